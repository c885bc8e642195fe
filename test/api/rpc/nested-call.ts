/** A CallRequest in protobuf whose payload is that deep: `{"a":{"a":…}}`, as no encoder would write it. */
export function nestedCall(levels: number): Buffer {
  const parts = [Buffer.from([0x18, 0x00])]; // Value.bool_value
  let length = 2;
  const wrap = (...before: number[]) => {
    const head = Buffer.from([...before, ...varint(length)]);
    parts.push(head);
    length += head.length;
  };
  for (let level = 0; level < levels; level++) {
    wrap(0x0a, 0x01, 0x61, 0x12); // an entry of the map: key "a", value
    wrap(0x0a); // Struct.fields
    if (level < levels - 1) wrap(0x2a); // Value.struct_value
  }
  wrap(0x1a); // CallDescription.payload
  wrap(0x22); // CallRequest.call
  return Buffer.concat(parts.reverse());
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return [...bytes, rest];
}
