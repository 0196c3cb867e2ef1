/** Elements in one expression: `make("button", {id: "pause", tip: "Stop time"}, icon("pause"))`. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === "tip") describe(element, value);
    else if (name === "class") element.className = value;
    else if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

/** Say what a control does, to eyes (see tips.js) and to screen readers. */
export function describe(element, tip) {
  element.dataset.tip = tip;
  element.setAttribute("aria-description", tip);
}

/** Give a file to whoever sits at the page: as text in base64, as a blob, or at an address. */
export function download({ name, type, base64, url, blob }) {
  const bytes = base64 && Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const href = url ?? URL.createObjectURL(blob ?? new Blob([bytes], { type }));
  const link = make("a", { href, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  if (!url) setTimeout(() => URL.revokeObjectURL(href), 10000);
}

const SVG = "http://www.w3.org/2000/svg";

/** A cube, whose hatched face is the one that is looked at. */
const CUBE = "M4 9.5h10.5V20H4zM4 9.5L9 4h11v10.5L14.5 20M14.5 9.5L20 4";

/** Icons are strokes in a square of 24; a dot is a stroke of no length. */
const STROKES = {
  grab: "M8 13.5V6a1.5 1.5 0 0 1 3 0v5M11 11V4.5a1.5 1.5 0 0 1 3 0V11M14 11V6a1.5 1.5 0 0 1 3 0v8.5" +
    "c0 3.5-2.4 6-5.8 6-2.9 0-4.4-1.4-5.9-3.9L3.3 13.3a1.5 1.5 0 0 1 2.5-1.6L8 14",
  pin: "M8.5 3.5h7M10 3.5v5.5l-3 4h10l-3-4V3.5M12 13v7.5",
  push: "M3 12h11M10 8l4 4-4 4M19 4v16",
  cut: "M3.5 6a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0M3.5 18a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0" +
    "M8 7.6L20 17M8 16.4L20 7",
  brush: "M20 4c-4.5 1.5-8 5-10 8.5l2 2C15.5 12.5 19 8.5 20 4z" +
    "M9.5 13.5c-2.5-.5-4.5 1-4.5 3.5 0 1.5-.8 2.3-2 2.800 3.5 1.200 8.5.5 8.5-3.800z",
  orbit: "M9.5 12a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0M3 12a9 4 0 1 0 18 0a9 4 0 1 0-18 0M12 3v2.5M12 18.5V21",
  play: "M7.5 5v14l11-7z",
  pause: "M8.5 5v14M15.5 5v14",
  step: "M6 5v14l9-7zM18.5 5v14",
  restart: "M4.5 12a7.5 7.5 0 1 0 2.4-5.5M4.5 4v4.5H9",
  reset: "M5.5 5v14M19 5v14l-9.5-7z",
  drop: "M12 3v10M8 9.5l4 4 4-4M5 19.5h14",
  fit: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  front: `${CUBE}M7 13h4.5M7 16.5h4.5`,
  side: `${CUBE}M17.3 9.5v5`,
  top: `${CUBE}M9.5 6.8h5.5`,
  photo: "M4 8h3.5l1.5-2.5h6L16.5 8H20v11H4zM8.5 13.2a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0",
  film: "M3.5 7h12v10h-12zM15.5 10.5l5-3v9l-5-3",
  help: "M9 9.2a3 3 0 1 1 4.3 2.6c-.9.4-1.3 1-1.3 1.9M12 17.3v.1",
  panels: "M4 7h9M17.5 7H20M4 17h2.5M11 17h9M13 7a2.2 2.2 0 1 0 4.4 0a2.2 2.2 0 1 0-4.4 0" +
    "M6.6 17a2.2 2.2 0 1 0 4.4 0a2.2 2.2 0 1 0-4.4 0",
  save: "M6 3.5h8l4 4v13H6zM14 3.5v4h4M9 12.5h6M9 16.5h6",
  record: "M6.5 12a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0-11 0",
  html: "M3.5 12a8.5 8.5 0 1 0 17 0a8.5 8.5 0 1 0-17 0M3.5 12h17M12 3.5c3.3 3 3.3 14 0 17M12 3.5c-3.3 3-3.3 14 0 17",
  loop: "M17 3l3 3-3 3M20 6H8a4 4 0 0 0-4 4v1M7 21l-3-3 3-3M4 18h12a4 4 0 0 0 4-4v-1",
  melt: "M12 3.5c3.8 4.6 5.8 7.4 5.8 10.4a5.8 5.8 0 0 1-11.6 0c0-3 2-5.8 5.8-10.4z",
  solidify: "M12 3v18M4.2 7.5l15.6 9M19.8 7.5l-15.6 9",
  undo: "M8.5 4.5L4.5 8.5l4 4M4.5 8.5H14a5.5 5.5 0 0 1 0 11H9",
  open: "M3.5 18.5v-13h6l2 2.5h7v3M3.5 18.5l3-7.5h14.5l-3 7.5z",
  close: "M6 6l12 12M18 6L6 18",
};

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", STROKES[name]);
  svg.append(path);
  return svg;
}
