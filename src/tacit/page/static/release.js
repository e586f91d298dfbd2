// Releasing: the form of each kind, its plan, what was released, and files of it.
import { download, keepChosen, notice, put, send } from "./page.js";
import { keepPlanned } from "./plans.js";

const byId = (id) => document.getElementById(id);

if (byId("release")) {
  const [tabs, form] = [byId("chosen").elements, () => byId("release")];
  const agreed = keepChosen(
    byId("chosen"),
    () => `${tabs.form.value} of ${tabs.table.value}`,
    () => `${form().dataset.form} of ${form().elements.table.value}`,
  );
  const plan = keepPlanned("release", (shown) => `${shown.dataset.post}/plan`, agreed);
  plan();
  document.addEventListener("answered", async (event) => {
    if (event.target.id !== "release") return;
    byId("plan").dataset.of = ""; // less is left now
    plan();
    const got = await send("/page/earlier");
    if (got.ok) put(got.html);
  });
}

const nothing = byId("released").cloneNode();

/** What was released under a number. */
async function show(number) {
  const got = await send("/page/released", { number });
  if (got.ok) put(got.html);
  else notice(got.problem);
  if (got.ok) byId("released").scrollIntoView();
}

const named = () => Number(/^#(\d+)$/.exec(location.hash)?.[1] ?? 0);
const shown = () => Number(byId("released").dataset.number ?? 0);

addEventListener("hashchange", () => {
  if (named() && named() !== shown()) show(named());
  else if (!named()) byId("released").replaceWith(nothing.cloneNode());
});
document.addEventListener("put", (event) => {
  if (event.target.id !== "released") return;
  if (event.target.dataset.number) history.replaceState(null, "", `#${event.target.dataset.number}`);
  event.target.focus();
});
document.addEventListener("click", (event) => {
  const { example } = event.target.dataset;
  if (example === undefined) return;
  const line = byId("release").elements.query;
  line.value = example;
  line.dispatchEvent(new Event("input", { bubbles: true }));
  line.focus();
});
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-save]");
  if (!button) return;
  button.disabled = true;
  await download("/page/save", { number: Number(button.dataset.number), format: button.dataset.save });
  button.disabled = false;
});
if (named()) show(named());
