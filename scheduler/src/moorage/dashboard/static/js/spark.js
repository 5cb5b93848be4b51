// @ts-check
import { html } from "../vendor/lit-html/lit-html.js";

const HEIGHT = 24;

/**
 * A small curve with its newest value.
 * @param {{title: string, values: number[], most?: number, words: (value: number) => string}} how
 *   most: the value at the upper edge, at least; words: a value as people read it
 */
export function spark({ title, values, most = 0, words }) {
  const top = Math.max(most, ...values, 1e-9);
  const last = Math.max(values.length - 1, 1);
  const points = values.map((value, at) => `${(100 * at) / last},${HEIGHT - (HEIGHT * value) / top}`).join(" ");
  const newest = words(values[values.length - 1] ?? 0);
  const label = `${title}: ${newest} now, ${words(Math.min(...values))} to ${words(Math.max(...values))} in the time shown`;
  return html`<figure class="spark">
    <figcaption>${title} <strong>${newest}</strong></figcaption>
    <svg viewBox="0 0 100 ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${label}>
      <polyline points=${points}></polyline>
    </svg>
    <p class="quiet">at most ${words(Math.max(...values))}</p>
  </figure>`;
}
