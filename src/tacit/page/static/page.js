// What every page needs: forms that send JSON, times in the reader's zone, and what updates itself.

/** Send JSON to this server. The result has `ok`, the `response`, or the words of a `problem`. */
async function sent(path, body) {
  const lost = { ok: false, lost: true, problem: "the server does not answer; try again: nothing is paid twice" };
  const request = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body ?? {}) };
  const response = await fetch(path, request).catch(() => null);
  if (!response) return lost;
  if (response.status === 401) {
    leave();
    return { ok: false, problem: "you are signed out" };
  }
  if (response.ok) return { ok: true, response };
  const kind = response.headers.get("Content-Type") ?? "";
  const told = kind.includes("problem+json") ? await response.json().catch(() => null) : null;
  return { ok: false, problem: told?.detail ?? "it is refused" };
}

/** Sign in anew, at the same place: the page that comes then says why. */
function leave() {
  sessionStorage.setItem("left", "yes"); // a browser drops a cookie that has expired, and then nobody knows whose it was
  location.reload();
}

/** The same, with what came back as `html` or `json`. */
export async function send(path, body) {
  const got = await sent(path, body);
  if (!got.ok) return got;
  const kind = got.response.headers.get("Content-Type") ?? "";
  const text = await got.response.text().catch(() => null);
  if (text === null) return { ok: false, lost: true, problem: "the answer did not arrive whole; try again: nothing is paid twice" };
  return kind.includes("json") ? { ok: true, json: JSON.parse(text) } : { ok: true, html: text };
}

/** Save what the server sends as a file, under the name that it says. */
export async function download(path, body) {
  const got = await sent(path, body);
  if (!got.ok) return notice(got.problem);
  const name = /filename="([^"]+)"/.exec(got.response.headers.get("Content-Disposition") ?? "")?.[1];
  save(name ?? "released", await got.response.blob());
}

export function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** One key for one request: the same again after a lost reply or a reload, until a reply has come. */
export function keyFor(path, { key, ...asked }) {
  const of = JSON.stringify(asked);
  const kept = JSON.parse(sessionStorage.getItem(path) ?? "null");
  if (kept?.of === of) return kept.key;
  const fresh = `${key}-${crypto.randomUUID()}`;
  sessionStorage.setItem(path, JSON.stringify({ of, key: fresh }));
  return fresh;
}

export const answeredKey = (path) => sessionStorage.removeItem(path);

/** Show times in the reader's zone, and say on hover what they are in UTC. */
export function localise(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([title])")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.valueOf())) continue;
    time.title = time.textContent;
    time.textContent = moment.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  }
}

/** Put what the server wrote into its place: parts with an id replace those with the same id, all or only some. */
export function put(html, only) {
  const made = document.createElement("template");
  made.innerHTML = html;
  const parts = only?.map((id) => made.content.getElementById(id)).filter(Boolean) ?? [...made.content.children];
  for (const part of parts) {
    const old = part.id && document.getElementById(part.id);
    if (!old) continue;
    localise(part);
    old.replaceWith(part);
    part.dispatchEvent(new CustomEvent("put", { bubbles: true }));
  }
}

export function notice(text) {
  const place = document.getElementById("notice");
  place.textContent = text;
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => { place.textContent = ""; }, 8000);
}

const READ = {
  integer: Number,
  list: (text) => text.split(",").map((one) => one.trim()),
  lines: (text) => text.split("\n").map((one) => one.trim()).filter(Boolean),
  bins: (text) => Object.fromEntries(text.split(",").map((one) => {
    const [, name, many] = /^\s*(.*?)[\s:=]+(\d+)\s*$/.exec(one) ?? [null, one.trim(), "0"];
    return [name, Number(many)];
  })),
};

/** The fields of a form by name, `a.b` within `a`; empty ones are left out, and data-kind says what others are. */
export function fields(form) {
  const found = {};
  for (const field of form.elements) {
    if (!field.name || field.disabled || (field.type === "radio" && !field.checked)) continue;
    const value = field.value.trim();
    const kind = field.dataset.kind;
    const path = field.name.split(".");
    const last = path.pop();
    const place = path.reduce((inner, name) => (inner[name] ??= {}), found);
    if (kind === "flag") {
      place[last] = field.checked;
    } else if (field.type === "checkbox") {
      if (field.checked) (place[last] ??= []).push(field.value);
    } else if (value !== "") {
      place[last] = READ[kind]?.(value) ?? value;
    }
  }
  return found;
}

export function wrong(form, words) {
  const place = form.querySelector("[data-wrong]");
  if (place) place.textContent = words;
  else if (words) notice(words);
}

/** Ask once more before something is paid or ended; the words come from the page, or from the form itself. */
async function confirmed(form) {
  const dialog = document.getElementById(form.dataset.confirm);
  const words = form.dataset.sure ?? document.querySelector(`#${form.dataset.words} [data-words]`)?.dataset.words;
  if (!words) {
    wrong(form, dialog.dataset.none); // there is nothing to agree to
    return false;
  }
  dialog.querySelector("p").textContent = words;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

export const CHANGED = "What is shown here has changed meanwhile: nothing was sent. Look at it once more.";

async function submitted(form, button) {
  if (form.dataset.busy) return;
  form.dataset.busy = "yes"; // a second click sends nothing
  try {
    wrong(form, "");
    if ((await form.ready?.()) === false) return notice(CHANGED);
    const body = { ...fields(form), ...(button?.name ? { [button.name]: JSON.parse(button.value) } : {}) };
    const agreed = JSON.stringify(fields(form));
    if (form.dataset.confirm && !(await confirmed(form))) return;
    if ((await form.ready?.()) === false || JSON.stringify(fields(form)) !== agreed) return notice(CHANGED);
    if (button) button.disabled = true;
    if (body.key) body.key = keyFor(form.dataset.post, body);
    const got = await send(form.dataset.post, body);
    if (body.key && !got.lost) answeredKey(form.dataset.post);
    if (!got.ok) return wrong(form, got.problem);
    if (got.html) put(got.html);
    form.dispatchEvent(new CustomEvent("answered", { bubbles: true, detail: got.json }));
    if (form.dataset.then) location.assign(form.dataset.then);
    else if (form.dataset.then === "") location.reload();
  } finally {
    delete form.dataset.busy;
    if (button) button.disabled = false;
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-post]");
  if (!form) return;
  event.preventDefault();
  submitted(form, event.submitter);
});

/**
 * Keep what is shown the one that a form has chosen, however and whenever it was chosen: also before this script was
 * there, by the back button, or while another one is on its way. The result waits, and says whether the two agree.
 */
export function keepChosen(form, chosen, shown) {
  let asking = null;
  const agree = async () => {
    while (chosen() !== shown()) {
      const wanted = chosen();
      const got = await send(form.dataset.choose, fields(form));
      if (!got.ok) notice(got.problem);
      else if (wanted === chosen()) put(got.html);
      if (wanted === chosen()) break;
    }
    return chosen() === shown();
  };
  const agreed = () => (asking ??= agree().finally(() => { asking = null; }));
  form.addEventListener("change", agreed);
  form.addEventListener("submit", (event) => { event.preventDefault(); agreed(); });
  addEventListener("pageshow", agreed);
  agreed();
  return agreed;
}

function follow(place) {
  const events = new EventSource(place.dataset.live);
  let shown = null;
  let failed = 0; // one after another: each event ends its request, and the browser asks again
  const old = document.getElementById("old");
  events.addEventListener("message", (event) => {
    failed = 0;
    old.textContent = "";
    if (event.data === shown) return;
    shown = event.data;
    place.innerHTML = event.data;
    localise(place);
    place.dataset.updates = String(Number(place.dataset.updates ?? 0) + 1);
  });
  events.addEventListener("error", async () => {
    failed += 1;
    if (failed > 1 && !old.textContent) old.textContent = `The server does not answer: this is how it was at ${new Date().toLocaleTimeString()}.`;
    if (events.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    const status = (await fetch(place.dataset.live).catch(() => null))?.status;
    if (status === 401) leave();
    else setTimeout(() => follow(place), 10_000);
  });
  addEventListener("pagehide", () => events.close(), { once: true });
}

addEventListener("pageshow", (event) => event.persisted && location.reload()); // what was kept may be old, or another's
const gone = document.getElementById("gone");
if (gone && sessionStorage.getItem("left") && !gone.textContent) gone.textContent = gone.dataset.words;
sessionStorage.removeItem("left");
localise(document);
for (const place of document.querySelectorAll("[data-live]")) follow(place);
