// @ts-check
/** The devices of a node, one in a row: how much of each is taken, and by which pods. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { bar } from "./bar.js";
import { amount, amountOf, podLink } from "./format.js";
import { byNumber } from "./tiles.js";

/** @typedef {import("./types.js").Node} Node */

const WHOLE = 1000;

/** @param {Node} node */
export function devices(node) {
  const holders = [...(node.pods ?? []), ...(node.others ? [node.others] : [])];
  const pools = [...new Set(holders.flatMap((each) => Object.keys(each.devices ?? {})))].sort();
  return pools.map((pool) => {
    const held = new Set(holders.flatMap((each) => Object.keys(each.devices?.[pool] ?? {})));
    const counted = Array.from({ length: node.allocatable[pool] ?? 0 }, (_, index) => String(index));
    const names = [...new Set([...counted, ...held])].sort(byNumber);
    return html`<table class="devices">
      <caption>
        Devices of ${pool}
      </caption>
      <tbody>
        ${names.map((name) => row(node, pool, name))}
      </tbody>
    </table>`;
  });
}

/** @param {Node} node @param {string} pool @param {string} name */
function row(node, pool, name) {
  const pods = (node.pods ?? []).filter((pod) => pod.devices?.[pool]?.[name]);
  const hidden = node.others?.devices?.[pool]?.[name] ?? 0;
  const used = pods.reduce((sum, pod) => sum + (pod.devices?.[pool]?.[name] ?? 0), hidden);
  return html`<tr>
    <th scope="row">${name}</th>
    <td>${bar(used, WHOLE)} ${amountOf(pool, used / WHOLE, 1)}</td>
    <td>
      ${pods.map(
        (pod) => html`<a href=${podLink(pod)}>${pod.namespace}/${pod.name}</a>
          <span class="quiet">${amount(pool, (pod.devices?.[pool]?.[name] ?? 0) / WHOLE)}</span> `,
      )}
      ${hidden ? html`pods of other namespaces <span class="quiet">${amount(pool, hidden / WHOLE)}</span>` : nothing}
    </td>
  </tr>`;
}
