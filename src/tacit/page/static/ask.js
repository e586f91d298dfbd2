// The question line: completion, what is refused while typing, answers, and a grid for GROUP BY.
import { answeredKey, CHANGED, keepChosen, keyFor, localise, notice, put, save, send, wrong } from "./page.js";
import { keepPlanned, soon } from "./plans.js";

const byId = (id) => document.getElementById(id);

// Completion ---------------------------------------------------------------------------------

/** What may stand at the caret: keys after a column and =, or else names of columns. */
function suggestions(text, columns) {
  const open = text.split("'").length % 2 === 0; // inside a quoted text
  const word = open ? text.slice(text.lastIndexOf("'")) : /[\w"]*$/.exec(text)[0];
  const before = text.slice(0, text.length - word.length);
  const after = /([\w]+|"[^"]+")\s*(?:=|<>|in\s*\((?:[^()]*,)?)\s*$/i.exec(before);
  const column = after && columns.find((one) => one.name.toLowerCase() === after[1].toLowerCase());
  const pool = column ? column.keys : columns.map((one) => one.name);
  if (!column && (word === "" || open)) return { word, found: [] };
  const start = word.toLowerCase().replace(/^'/, "");
  const found = pool.filter((one) => one.toLowerCase().replace(/^'/, "").startsWith(start) && one !== word);
  return { word, found: found.slice(0, 8) };
}

function complete(line) {
  const list = byId("completions");
  const columns = JSON.parse(line.dataset.columns);
  const { word, found } = suggestions(line.value.slice(0, line.selectionStart), columns);
  list.replaceChildren(...found.map((text, place) => {
    const item = document.createElement("li");
    item.id = `completion-${place}`;
    item.role = "option";
    item.textContent = text;
    item.setAttribute("aria-selected", "false");
    item.addEventListener("mousedown", (event) => { event.preventDefault(); take(line, word, text); });
    return item;
  }));
  list.hidden = found.length === 0;
  line.setAttribute("aria-expanded", String(found.length > 0));
  line.removeAttribute("aria-activedescendant");
  line.dataset.word = word;
}

function close(line) {
  byId("completions").hidden = true;
  line.setAttribute("aria-expanded", "false");
  line.removeAttribute("aria-activedescendant");
}

function take(line, word, text) {
  const caret = line.selectionStart;
  line.setRangeText(text, caret - word.length, caret, "end");
  close(line);
  line.dispatchEvent(new Event("input", { bubbles: true }));
  close(line);
}

function moved(line, by) {
  const items = [...byId("completions").children];
  const at = items.findIndex((item) => item.getAttribute("aria-selected") === "true");
  const next = items[(at + by + items.length + (at < 0 && by < 0 ? 1 : 0)) % items.length];
  for (const item of items) item.setAttribute("aria-selected", String(item === next));
  line.setAttribute("aria-activedescendant", next.id);
  next.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  const line = event.target;
  if (line.id !== "question" || byId("completions").hidden) return;
  const chosen = byId("completions").querySelector("[aria-selected=true]");
  if (event.key === "ArrowDown") moved(line, 1);
  else if (event.key === "ArrowUp") moved(line, -1);
  else if (event.key === "Escape") close(line);
  else if ((event.key === "Enter" || event.key === "Tab") && chosen) take(line, line.dataset.word, chosen.textContent);
  else return;
  event.preventDefault();
});
document.addEventListener("focusout", (event) => event.target.id === "question" && close(event.target));

// While typing ---------------------------------------------------------------------------------

let checked = { text: null, done: Promise.resolve() };

function check(line) {
  const text = line.value.trim();
  if (text === checked.text) return checked.done;
  const mine = { text };
  checked = mine;
  mine.done = (async () => {
    if (text === "") return put('<div id="check" class="check" aria-live="polite"></div>');
    const got = await send("/page/check", { stream: line.form.elements.stream.value, question: text });
    if (checked !== mine || !line.isConnected) return;
    if (got.ok) put(got.html);
    else wrong(line.form, got.problem);
  })();
  return mine.done;
}

const checkSoon = soon(check, 250);

const planSoon = keepPlanned("open", () => "/page/plan");

document.addEventListener("input", (event) => {
  if (event.target.id === "question") {
    complete(event.target);
    checkSoon(event.target);
  } else if (event.target.id === "filter") {
    filter();
  }
});

/** Show the answers that have the words of the filter; also those that come later. */
function filter() {
  const wanted = byId("filter").value.toLowerCase();
  for (const row of byId("answers").tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
}

// Asking ---------------------------------------------------------------------------------------

function answered(html) {
  const made = document.createElement("template");
  made.innerHTML = html;
  put(html);
  const rows = made.content.querySelector("[data-prepend] tbody");
  const table = byId("answers").tBodies[0];
  if (rows) {
    localise(rows);
    table.prepend(...rows.rows);
  }
  filter();
}

async function ask(form) {
  if (form.dataset.busy) return;
  form.dataset.busy = "yes";
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const line = form.elements.question;
    const text = line.value.trim();
    wrong(form, "");
    await check(line);
    if (!(await shownIsChosen()) || !form.isConnected || line.value.trim() !== text) return notice(CHANGED);
    if ("refused" in byId("check").dataset) return wrong(form, "This stream refuses it: nothing was asked.");
    const keys = JSON.parse(byId("check").dataset.keys ?? "[]");
    if (keys.length && !("watched" in form.dataset)) return await askAll(form, text, keys);
    const asked = { stream: form.elements.stream.value, question: text };
    const key = keyFor("/page/ask", { key: form.elements.key.value, ...asked });
    const got = await send("/page/ask", { key, ...asked });
    if (!got.lost) answeredKey("/page/ask");
    if (!form.isConnected) return; // another stream is shown now; whose this is shows it among its answers
    if (!got.ok) return wrong(form, got.problem);
    answered(got.html);
    line.select();
  } finally {
    delete form.dataset.busy;
    button.disabled = false;
  }
}

/** A GROUP BY: one batch after another, each up to its next ⊤, until all cells are answered, or its stream is left. */
async function askAll(form, text, keys) {
  const total = keys.reduce((many, one) => many * one.keys.length, 1);
  const stream = form.elements.stream.value;
  const key = keyFor("/page/ask", { key: form.elements.key.value, stream, question: text });
  let left = Number(byId("stream-head").dataset.topsLeft);
  let [answered, shown, looked, lost] = [0, 0, 0, false];
  while (form.isConnected && answered < total && left > 0) {
    const told = await batch({ key: `${key}-${answered}`, stream, questions: { question: text }, skip: answered });
    answered += told.answered;
    left -= told.tops;
    if (!form.isConnected) return; // under its key it goes on from here when it is asked again
    byId("said").textContent = `${answered} of ${total} cells answered`;
    if (Date.now() - looked > 1000) {
      shown = await look(stream);
      looked = Date.now();
    }
    if (told.words || told.answered === 0) {
      wrong(form, told.words ?? "");
      lost = told.lost ?? false;
      break;
    }
  }
  if (!lost) answeredKey("/page/ask");
  for (let times = 0; shown < answered && times < 10; times += 1) {
    if (times) await new Promise((resume) => { setTimeout(resume, 300); }); // others' answers may hold up the last cells
    shown = await look(stream);
  }
}

/** One batch: how many cells were answered, how many of them are new ⊤, and what is wrong, if something is. */
async function batch(body) {
  const told = { answered: 0, tops: 0 };
  const response = await fetch("/v1/streams/ask_all", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  }).catch(() => null);
  const text = await response?.text().catch(() => null);
  if (text == null) return { ...told, lost: true, words: "the server does not answer; try again: nothing is paid twice" };
  for (const block of text.split("\n").filter(Boolean).map((line) => JSON.parse(line))) {
    if (block.detail) return { ...told, words: block.detail };
    told.answered += block.answered;
    told.tops += block.above.filter((one) => !one.answer.recorded).length;
  }
  return told;
}

/** Show the stream as it stands now; how many cells of its newest grid are answered. */
async function look(stream) {
  const got = await send("/page/stream", { stream });
  if (got.ok && byId("stream").dataset.stream === stream) put(got.html, ["stream-head", "grid", "answers"]);
  return Number(byId("grid").querySelector("table")?.dataset.answered ?? 0);
}

// What is done with a table ----------------------------------------------------------------------

const HEAD = ["at", "question", "answer", "value", "error"];

function lines(id) {
  const shown = [...byId(id).tBodies[0].rows].filter((row) => !row.hidden);
  return shown.map((row) => [row.querySelector("time").dateTime, row.cells[1].textContent, ...JSON.parse(row.dataset.saved)]);
}

const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-csv-of]");
  if (!button) return;
  const rows = [HEAD, ...lines(button.dataset.copy ?? button.dataset.csvOf)];
  if (button.dataset.csvOf) {
    const text = rows.map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
    return save(button.dataset.name, new Blob([text], { type: "text/csv;charset=utf-8" }));
  }
  await navigator.clipboard.writeText(rows.map((row) => row.join("\t")).join("\n"));
  notice(rows.length === 2 ? "1 answer copied" : `${rows.length - 1} answers copied`);
});

document.addEventListener("submit", (event) => {
  if (event.target.id !== "ask-form") return;
  event.preventDefault();
  ask(event.target);
});

document.addEventListener("answered", async (event) => {
  if (event.target.id !== "open") return;
  location.hash = encodeURIComponent(event.detail.name);
  location.reload();
});

const streams = byId("choose").elements.stream;
const wanted = decodeURIComponent(location.hash.slice(1));
if ([...streams.options].some((one) => one.value === wanted)) streams.value = wanted;
const shownIsChosen = keepChosen(byId("choose"), () => (streams.disabled ? "" : streams.value), () => byId("stream").dataset.stream ?? "");
document.addEventListener("put", (event) => {
  if (event.target.id === "answers") filter();
  if (event.target.id === "stream") history.replaceState(null, "", `#${encodeURIComponent(event.target.dataset.stream)}`);
});
if (byId("opening").open) planSoon();
byId("opening").addEventListener("toggle", () => byId("opening").open && planSoon());
