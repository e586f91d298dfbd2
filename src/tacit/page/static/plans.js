// A form whose plan stands beside it: planned while typing, and again before it is paid.
import { fields, put, send, wrong } from "./page.js";

const byId = (id) => document.getElementById(id);
export const soon = (what, after) => {
  let timer;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => what(...given), after); };
};

/** What a plan is made from: all of the form but its key. */
function planned(form) {
  const { key, ...body } = fields(form);
  return JSON.stringify([form.dataset.post, body]);
}

let planning = null;

/** Plan what the form says now, one plan at a time; it is done when the plan is the form's. */
function plan(id, path) {
  planning ??= planAll(id, path).finally(() => { planning = null; }); // which comes later, even if nothing is to be done
  return planning;
}

async function planAll(id, path) {
  while (byId(id) && byId("plan").dataset.of !== planned(byId(id))) {
    const form = byId(id);
    const of = planned(form);
    const got = await send(path(form), fields(form));
    put(got.ok ? got.html : '<div id="plan" class="card" aria-live="polite"><p class="quiet">There is no plan for this.</p></div>');
    wrong(form, got.ok ? "" : got.problem);
    byId("plan").dataset.of = of;
  }
}

/** Keep a form's plan up to date, also when another form of the same id takes its place, as may be `agreed` first. */
export function keepPlanned(id, path, agreed = () => true) {
  const later = soon(() => plan(id, path), 350);
  const ready = () => { // what is confirmed is what was planned, and what is shown
    const form = byId(id);
    form.ready = async () => {
      await plan(id, path);
      return (await agreed()) && form.isConnected;
    };
  };
  document.addEventListener("input", (event) => event.target.form?.id === id && later());
  document.addEventListener("put", (event) => event.target.id === id && (ready(), later()));
  ready();
  return later;
}
