/** Numbers as people write them: three digits and a unit of fitting size; and back. */

const PREFIXES = [["G", 1e9], ["M", 1e6], ["k", 1e3], ["", 1], ["m", 1e-3], ["µ", 1e-6], ["n", 1e-9]];
const PREFIXED = new Set(["Pa", "Pa s", "s", "J", "m", "N", "N m"]);

/** Three digits that count, more only before the point. */
export function digits(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e6 || size < 1e-4) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
  return String(size >= 1000 ? Math.round(value) : Number(value.toPrecision(3)));
}

/** The unit that fits a value, and what one of it is worth: 1.5e6 Pa are written in MPa. */
export function fitting(value, unit) {
  if (!PREFIXED.has(unit) || value === 0 || !Number.isFinite(value)) return { unit, worth: 1 };
  const size = Math.abs(value) * 1.0005;
  const [prefix, worth] = PREFIXES.find(([, worth]) => size >= worth) ?? PREFIXES.at(-1);
  return { unit: prefix + unit, worth };
}

export const inUnit = (value, { unit, worth }) => [digits(value / worth), unit].filter(Boolean).join(" ");

export const written = (value, unit = "") => inUnit(value, fitting(value, unit));

/** What was typed, in SI; a number alone is in the unit that was shown. NaN if it cannot be read. */
export function read(text, unit, shown) {
  const match = text.trim().replace(",", ".").match(/^([-+]?[\d.]+(?:e[-+]?\d+)?)\s*(.*)$/i);
  if (!match) return NaN;
  const [, number, tail] = match;
  const name = tail.trim().replace(/^u(?=\S)/, "µ");
  if (name === "") return Number(number) * shown.worth;
  const prefix = PREFIXES.find(([prefix]) => prefix + unit === name || (prefix !== "" && prefix === name));
  if (name === unit) return Number(number);
  if (name === "%" && unit === "") return Number(number) / 100;
  return prefix && PREFIXED.has(unit) ? Number(number) * prefix[1] : NaN;
}
