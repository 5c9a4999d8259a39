// A reader of the protobuf wire format, as much of it as proto/window.proto needs.
// Varints come as doubles: exact up to 2^53, nearest beyond. Where that is not good enough
// (ids), bigUnsigned reads the same bytes exactly.

const TWO32 = 4294967296;

export class Wire {
  at = 0;
  readonly end: number;

  constructor(readonly buf: Uint8Array) {
    this.end = buf.length;
  }

  more(): boolean {
    return this.at < this.end;
  }

  private byte(): number {
    const b = this.buf[this.at++];
    if (b === undefined) throw new Error(`window: cut off at byte ${this.end}`);
    return b;
  }

  unsigned(): number {
    let lo = 0;
    let hi = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const b = this.byte();
      const bits = b & 0x7f;
      if (shift < 28) {
        lo |= bits << shift;
      } else if (shift === 28) {
        lo |= (bits & 0x0f) << 28;
        hi = bits >>> 4;
      } else if (shift < 63) {
        hi |= bits << (shift - 32);
      } else {
        hi |= (bits & 1) << 31;
      }
      if (b < 0x80) return (hi >>> 0) * TWO32 + (lo >>> 0);
    }
    throw new Error(`window: a varint of more than ten bytes at ${this.at}`);
  }

  bigUnsigned(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const b = this.byte();
      value |= BigInt(b & 0x7f) << shift;
      if (b < 0x80) return BigInt.asUintN(64, value);
    }
    throw new Error(`window: a varint of more than ten bytes at ${this.at}`);
  }

  bigSigned(): bigint {
    return BigInt.asIntN(64, this.bigUnsigned());
  }

  bytes(): Uint8Array {
    const n = this.unsigned();
    if (n > this.end - this.at) throw new Error(`window: ${n} bytes announced at ${this.at}, ${this.end - this.at} are there`);
    this.at += n;
    return this.buf.subarray(this.at - n, this.at);
  }

  skip(wireType: number): void {
    if (wireType === 0) this.unsigned();
    else if (wireType === 1) this.at += 8;
    else if (wireType === 2) this.bytes();
    else if (wireType === 5) this.at += 4;
    else throw new Error(`window: wire type ${wireType} at byte ${this.at}`);
    if (this.at > this.end) throw new Error(`window: cut off at byte ${this.end}`);
  }
}

export function zigzag(n: number): number {
  return n % 2 === 0 ? n / 2 : -(n + 1) / 2;
}

export function bigZigzag(n: bigint): bigint {
  return (n >> 1n) ^ -(n & 1n);
}

/** Number of varints in a packed field. */
function countVarints(packed: Uint8Array): number {
  let n = 0;
  for (const b of packed) if (b < 0x80) n++;
  return n;
}

export function packedNumbers(packed: Uint8Array): Float64Array<ArrayBuffer> {
  const out = new Float64Array(countVarints(packed));
  const wire = new Wire(packed);
  for (let i = 0; wire.more(); i++) out[i] = wire.unsigned();
  return out;
}

/** Running sum of zigzag differences, exact whatever the size. */
export function packedIds(packed: Uint8Array): Float64Array<ArrayBuffer> | BigUint64Array<ArrayBuffer> {
  const out = packedNumbers(packed);
  let id = 0;
  let safe = true;
  for (let i = 0; i < out.length && safe; i++) {
    const step = out[i]!;
    id += zigzag(step);
    safe = step <= Number.MAX_SAFE_INTEGER && id >= 0 && id <= Number.MAX_SAFE_INTEGER;
    out[i] = id;
  }
  return safe ? out : packedBigIds(packed);
}

function packedBigIds(packed: Uint8Array): BigUint64Array<ArrayBuffer> {
  const out = new BigUint64Array(countVarints(packed));
  const wire = new Wire(packed);
  let id = 0n;
  for (let i = 0; wire.more(); i++) {
    id = BigInt.asUintN(64, id + bigZigzag(wire.bigUnsigned()));
    out[i] = id;
  }
  return out;
}
