// @ts-check
/** Which colour a pod has: by namespace, priority, owner or group. */

/** @typedef {import("./types.js").FillingPod} FillingPod */
/** @typedef {import("./types.js").Node} Node */

const NAMED = 7;
const NONE = "none";

/** @type {Record<string, (pod: FillingPod) => string>} */
export const KEYS = {
  namespace: (pod) => pod.namespace,
  priority: (pod) => String(pod.priority ?? 0),
  owner: (pod) => pod.owner ?? NONE,
  group: (pod) => pod.group ?? NONE,
};

/** The value of a colour of the style sheet. @param {string} name */
export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/**
 * The colours of the keys with most pods; every other key has the last one.
 * @param {Iterable<Node>} nodes
 * @param {string} by
 * @returns {{of: (pod: FillingPod) => string, legend: {key: string, colour: string, pods: number}[]}}
 */
export function colours(nodes, by) {
  const keyOf = KEYS[by] ?? KEYS.namespace;
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const node of nodes) {
    for (const pod of node.pods ?? []) {
      const key = keyOf(pod);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  const most = [...counts.keys()].filter((key) => key !== NONE);
  most.sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0) || (a < b ? -1 : 1));
  const named = most.slice(0, NAMED).sort(order);
  const colourOf = new Map(named.map((key, index) => [key, css(`series-${index + 1}`)]));
  const rest = css("series-rest");
  const legend = named.map((key) => ({
    key,
    colour: colourOf.get(key) ?? rest,
    pods: counts.get(key) ?? 0,
  }));
  const others = [...counts].filter(([key]) => !colourOf.has(key));
  const left = others.reduce((sum, [, pods]) => sum + pods, 0);
  if (left) {
    const only = others.length === 1 ? others[0][0] : `${others.length} others`;
    legend.push({ key: only, colour: rest, pods: left });
  }
  return { of: (pod) => colourOf.get(keyOf(pod)) ?? rest, legend };
}

/** Numbers by size, other keys by name. @param {string} a @param {string} b */
function order(a, b) {
  const difference = Number(a) - Number(b);
  if (!Number.isNaN(difference)) return difference;
  return a < b ? -1 : 1;
}
