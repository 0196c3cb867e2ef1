/** One small note beside whatever has `data-tip`, shown when the pointer rests there or the keyboard comes by. */
import { make } from "phyxel/elements.js";

const REST = 450; // [ms] until the note comes
const GAP = 8; // [px]

export function startTips() {
  const note = make("div", { id: "tip", role: "tooltip", hidden: true });
  document.body.append(note);
  let timer = 0;
  const hide = () => {
    clearTimeout(timer);
    note.hidden = true;
  };
  const soon = (event) => {
    const owner = event.target.closest?.("[data-tip]");
    hide();
    if (owner && event.pointerType !== "touch") timer = setTimeout(() => show(note, owner), REST);
  };
  addEventListener("pointerover", soon);
  addEventListener("focusin", (event) => event.target.matches(":focus-visible") && soon(event));
  for (const end of ["pointerdown", "focusout", "keydown", "wheel"]) addEventListener(end, hide, { passive: true });
}

function show(note, owner) {
  if (!owner.isConnected) return;
  note.textContent = owner.dataset.tip;
  if (owner.dataset.key) note.append(" ", make("kbd", {}, owner.dataset.key));
  note.hidden = false;
  const [x, y] = beside(owner, note.getBoundingClientRect());
  note.style.left = `${x}px`;
  note.style.top = `${y}px`;
}

/** Left of the panels, so that their other controls stay in sight; else below its owner, or above. */
function beside(owner, { width, height }) {
  const there = owner.getBoundingClientRect();
  const column = owner.closest("#panels")?.getBoundingClientRect();
  const between = (place, most) => Math.min(Math.max(place, GAP), most - GAP);
  if (column && column.left > width + 2 * GAP) {
    return [column.left - width - GAP, between(there.top + (there.height - height) / 2, innerHeight - height)];
  }
  const below = there.bottom + 2 * GAP + height < innerHeight;
  const left = between(there.left + (there.width - width) / 2, innerWidth - width);
  return [left, below ? there.bottom + GAP : there.top - height - GAP];
}
