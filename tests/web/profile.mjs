// Small profiles written by hand: an XSpace message, as much of it as the tests need.

const varint = (value) => {
  let v = BigInt.asUintN(64, BigInt(value));
  const out = [];
  do {
    out.push(Number(v & 127n) | (v > 127n ? 128 : 0));
    v >>= 7n;
  } while (v > 0n);
  return Buffer.from(out);
};
const int = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const block = (field, body) => Buffer.concat([varint((field << 3) | 2), varint(body.length), body]);
const text = (field, value) => block(field, Buffer.from(value));
const entry = (field, id, body) => block(field, Buffer.concat([int(1, id), block(2, body)]));

/** events: [name id, begin ps, duration ps, argument or undefined; a number: the flow they belong to] */
function line(id, name, events) {
  return block(3, Buffer.concat([
    int(1, id), text(2, name),
    ...events.map(([meta, begin, duration, argument]) => block(4, Buffer.concat([
      int(1, meta), int(2, begin), int(3, duration),
      ...(argument === undefined ? [] : [block(4, Buffer.concat([int(1, 1), typeof argument === "bigint" ? int(3, argument) : text(5, argument)]))]),
    ]))),
  ]));
}

export function plane(id, name, names, lines, argumentName = "note") {
  return block(1, Buffer.concat([
    int(1, id), text(2, name),
    ...lines.map((l, i) => line(i + 1, l.name, l.events)),
    ...names.map((n, i) => entry(4, i + 1, Buffer.concat([int(1, i + 1), text(2, n)]))),
    entry(5, 1, Buffer.concat([int(1, 1), text(2, argumentName)])),
  ]));
}

/** Steps of operations on two devices and a host thread with nested calls. */
export function plainProfile(steps = 200) {
  const names = ["fusion.1", "copy.2", "all-reduce.3", "jit_step"];
  const ops = [];
  const modules = [];
  for (let i = 0; i < steps; i++) {
    const at = i * 10_000_000;
    modules.push([4, at, 9_000_000]);
    ops.push([1, at, 4_000_000, `step ${i}`], [2, at + 4_100_000, 1_000_000], [3, at + 5_200_000, 3_000_000, "ring"]);
  }
  const calls = [[1, 0, steps * 10_000_000], ...ops.map(([, at]) => [2, at + 10_000, 500_000])];
  return Buffer.concat([
    plane(1, "/device:TPU:0", names, [{ name: "XLA Modules", events: modules }, { name: "XLA Ops", events: ops }]),
    plane(2, "/device:TPU:1", names, [{ name: "XLA Ops", events: ops }]),
    plane(3, "/host:CPU", ["train", "launch"], [{ name: "python", events: calls }]),
  ]);
}

export const MARKUP = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'"&amp;`;

export function hostileProfile() {
  const names = [MARKUP, "javascript:window.pwned=1", "\u202Eevil\u0000\u0007", "x".repeat(5000), ""];
  const events = names.map((_, i) => [i + 1, i * 2_000_000, 1_500_000, MARKUP]);
  return Buffer.concat([plane(1, `/device:TPU:0 ${MARKUP}`, names, [{ name: MARKUP, events }], MARKUP)]);
}

/** Operations that say which scope of the framework they are of: lines can be derived from them. */
export function scopedProfile(n = 300) {
  const ops = Array.from({ length: n }, (_, i) => [1 + (i % 2), i * 1_000_000, 900_000, `jit(f)/layer${Math.floor(i / 30)}/${["dot", "add"][i % 2]}:`]);
  return plane(1, "/device:TPU:0", ["fusion.1", "add.2"], [{ name: "XLA Ops", events: ops }], "tf_op");
}

/** Calls of the host, each of which launches an operation of the device later. */
export function linkedProfile(n = 20) {
  const flow = (i, direction) => (BigInt(i + 1) << 2n) | direction;
  const calls = Array.from({ length: n }, (_, i) => [1, i * 10_000_000, 1_000_000, flow(i, 2n)]);
  const ops = Array.from({ length: n }, (_, i) => [1, i * 10_000_000 + 4_000_000, 5_000_000, flow(i, 1n)]);
  return Buffer.concat([
    plane(1, "/device:TPU:0", ["fusion.1"], [{ name: "XLA Ops", events: ops }], "flow"),
    plane(2, "/host:CPU", ["launch"], [{ name: "python", events: calls }], "flow"),
  ]);
}

/** Many devices with one event each. */
export function manyProfile(devices) {
  const names = ["fusion.1"];
  return Buffer.concat(Array.from({ length: devices }, (_, i) =>
    plane(i + 1, `/device:TPU:${i}`, names, [{ name: "XLA Ops", events: [[1, i * 1000, 50_000_000]] }])));
}
