// Releasing: the form of each kind, its plan, what was released, and files of it.
import { download, notice, put, send } from "./page.js";
import { keepPlanned } from "./plans.js";

const byId = (id) => document.getElementById(id);

if (byId("release")) {
  keepPlanned("release", (form) => `${form.dataset.post}/plan`)();
  byId("chosen").addEventListener("change", () => byId("chosen").requestSubmit());
}

/** What was released under a number. */
async function show(number) {
  const got = await send("/page/released", { number });
  if (got.ok) put(got.html);
  else notice(got.problem);
  if (got.ok) byId("released").scrollIntoView();
}

const named = () => Number(/^#(\d+)$/.exec(location.hash)?.[1] ?? 0);
const shown = () => Number(byId("released").dataset.number ?? 0);

addEventListener("hashchange", () => named() && named() !== shown() && show(named()));
document.addEventListener("put", (event) => {
  if (event.target.id !== "released") return;
  if (event.target.dataset.number) history.replaceState(null, "", `#${event.target.dataset.number}`);
  event.target.focus();
});
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-save]");
  if (!button) return;
  button.disabled = true;
  await download("/page/save", { number: Number(button.dataset.number), format: button.dataset.save });
  button.disabled = false;
});
if (named()) show(named());
