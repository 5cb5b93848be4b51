// @ts-check
/** Amounts, times and links as people read them. */

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const BYTES = new Set(["memory", "ephemeral-storage"]);

/** @param {number} value */
function short(value) {
  return String(Number(value.toPrecision(3)));
}

/**
 * An amount of a resource: cpu is given in millicores, memory and storage in bytes.
 * @param {string} resource
 * @param {number} amount
 */
export function amount(resource, amount) {
  if (resource === "cpu") return `${short(amount / 1000)} cpu`;
  if (!BYTES.has(resource) && !resource.startsWith("hugepages-")) return short(amount);
  let power = 0;
  while (amount >= 1024 && power < BINARY.length - 1) {
    amount /= 1024;
    power += 1;
  }
  return `${short(amount)} ${BINARY[power]}`;
}

/**
 * An amount out of a whole; the unit stands once where both have the same.
 * @param {string} resource
 * @param {number} part
 * @param {number} whole
 */
export function amountOf(resource, part, whole) {
  const [some, all] = [amount(resource, part), amount(resource, whole)];
  const unit = all.indexOf(" ");
  const same = unit >= 0 && some.slice(some.indexOf(" ")) === all.slice(unit);
  return `${same ? some.slice(0, some.indexOf(" ")) : some} of ${all}`;
}

/** A part of a whole. @param {number} part @param {number} whole */
export function percent(part, whole) {
  return whole ? `${Math.round((100 * part) / whole)} %` : "-";
}

/** A duration. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${short(seconds * 1000)} ms`;
  if (seconds < 120) return `${short(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

/** How long ago, or how long until, by the scheduler's time. @param {string} time @param {string} now */
export function between(time, now) {
  return duration(Math.max(0, (Date.parse(time) - Date.parse(now)) / 1000));
}

/** A time of the day. @param {string} time RFC 3339 */
export function clock(time) {
  return time.slice(11, 19);
}

/** A number of things. @param {number} number @param {string} noun */
export function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** The address of a pod's view. @param {{namespace: string, name: string}} pod */
export function podLink(pod) {
  return `/pod/${encodeURIComponent(pod.namespace)}/${encodeURIComponent(pod.name)}`;
}

/** The address of a group's view. @param {string} group namespace/name */
export function groupLink(group) {
  return `/groups/${group.split("/").map(encodeURIComponent).join("/")}`;
}

/**
 * The address of the view that says what keeps the pods of a workload: of their group, or their owner.
 * @param {{namespace: string, name: string, owner?: string, group?: string}} pod one of them
 */
export function workloadLink({ namespace, name, owner, group }) {
  if (group) return groupLink(group);
  return owner
    ? `/workloads/${encodeURIComponent(namespace)}/${owner.split("/").map(encodeURIComponent).join("/")}`
    : podLink({ namespace, name });
}

/** The address of a node in the cluster's view. @param {string} node */
export function nodeLink(node) {
  return `/cluster?node=${encodeURIComponent(node)}`;
}
