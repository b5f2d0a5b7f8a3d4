// AMQP messages as bytes. What the sender wrote is kept as it was written and handed on as it was written: decoding and
// encoding again would lose types that JavaScript has not (int, long, ubyte, timestamp). Only the sections that belong to
// the broker, header and annotations, are written anew for every delivery.
import rhea from 'rhea';

const { types } = rhea;

export const SECTION = {
  header: 0x70,
  deliveryAnnotations: 0x71,
  messageAnnotations: 0x72,
  properties: 0x73,
  applicationProperties: 0x74,
  data: 0x75,
  sequence: 0x76,
  value: 0x77,
  footer: 0x78,
};

// The fields of the properties section, in their order (AMQP 1.0 part 3.2.4).
const PROPERTIES = [
  'messageId', 'userId', 'to', 'subject', 'replyTo', 'correlationId', 'contentType', 'contentEncoding',
  'absoluteExpiryTime', 'creationTime', 'groupId', 'groupSequence', 'replyToGroupId',
];

const BROKER_ANNOTATIONS = new Set([
  'x-opt-sequence-number', 'x-opt-enqueue-sequence-number', 'x-opt-enqueued-time', 'x-opt-locked-until',
  'x-opt-scheduled-enqueue-time', 'x-opt-message-state', 'x-opt-deadletter-source',
]);

/** A message that is not AMQP 1.0. */
export class DecodeError extends Error {}

// end gives the position after the value that starts at the given one.
function end(buffer, at) {
  const code = buffer[at];
  if (code === undefined) throw new DecodeError('the message ends in the middle of a value');
  if (code === 0x00) return end(buffer, end(buffer, at + 1)); // a descriptor, then what it describes
  const fixed = { 0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16 }[code >>> 4];
  let next;
  if (fixed !== undefined) {
    next = at + 1 + fixed;
  } else if (code >= 0xa0) {
    const wide = (code >>> 4) % 2 === 1; // 0xa, 0xc, 0xe have one byte of size, 0xb, 0xd, 0xf four
    if (at + (wide ? 5 : 2) > buffer.length) throw new DecodeError('the message ends in the middle of a size');
    next = wide ? at + 5 + buffer.readUInt32BE(at + 1) : at + 2 + buffer[at + 1];
  } else {
    throw new DecodeError(`no AMQP type has the code 0x${code.toString(16)}`);
  }
  if (next > buffer.length) throw new DecodeError('the message ends in the middle of a value');
  return next;
}

/** decode gives the JavaScript value of one encoded value. */
export function decode(raw) {
  return types.unwrap(new types.Reader(raw).read());
}

function encode(typed) {
  const writer = new types.Writer();
  writer.write(typed);
  return Buffer.from(writer.toBuffer());
}

/** sections splits a message. Each has its code, all its bytes, and the bytes of its value. */
export function sections(buffer) {
  const found = [];
  for (let at = 0; at < buffer.length;) {
    if (buffer[at] !== 0x00) throw new DecodeError('a message consists of described sections');
    const value = end(buffer, at + 1);
    const next = end(buffer, value);
    found.push({ code: Number(decode(buffer.subarray(at + 1, value))), bytes: buffer.subarray(at, next), value: buffer.subarray(value, next) });
    at = next;
  }
  return found;
}

// pairs splits an encoded map into [key, encoded key, encoded value].
function pairs(map) {
  const code = map[0];
  if (code !== 0xc1 && code !== 0xd1) throw new DecodeError('a map is expected');
  const found = [];
  for (let at = code === 0xc1 ? 3 : 9; at < map.length;) {
    const value = end(map, at);
    const next = end(map, value);
    const key = map.subarray(at, value);
    found.push([String(decode(key)), key, map.subarray(value, next)]);
    at = next;
  }
  return found;
}

function encodeMap(code, entries) {
  const items = Buffer.concat(entries.flatMap(([, key, value]) => [key, value]));
  const head = Buffer.from([0x00, 0x53, code, 0xd1, 0, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(items.length + 4, 4);
  head.writeUInt32BE(entries.length * 2, 8);
  return Buffer.concat([head, items]);
}

function list(raw) {
  return new types.Reader(raw).read().value;
}

// property makes an application property of a key and a value, which may be one of rhea's typed values.
function property(key, value) {
  return [key, encode(types.wrap_string(key)), encode(types.wrap(value))];
}

/**
 * properties makes application properties of what a client sent along with a settlement: a map as rhea read it, where
 * values that are objects keep their type. Numbers have lost theirs; whole ones become longs.
 */
export function changes(map) {
  return Object.entries(map ?? {}).map(([key, value]) => property(key, Number.isInteger(value) ? types.wrap_long(value) : value));
}

/** merge puts application properties over others. */
export function merge(base, over) {
  const merged = new Map(base.map((p) => [p[0], p]));
  for (const p of over) merged.set(p[0], p);
  return [...merged.values()];
}

const noProperties = Buffer.from([0x00, 0x53, SECTION.properties, 0x45]); // the SDK shows no delivery count without one

/**
 * parse takes an encoded message apart into what the broker needs of it:
 * messageId ('' = none), scheduledFor (ms, undefined = now), ttl (ms), durable, priority, annotations,
 * applicationProperties, and the bytes of properties and body.
 */
export function parse(buffer) {
  const parsed = { messageId: '', annotations: [], properties: noProperties, applicationProperties: [], size: buffer.length };
  const body = [];
  for (const section of sections(buffer)) {
    switch (section.code) {
      case SECTION.header: {
        const [durable, priority, ttl] = list(section.value).map((field) => field.value);
        Object.assign(parsed, { durable: durable ?? undefined, priority: priority ?? undefined, ttl: ttl ?? undefined });
        break;
      }
      case SECTION.messageAnnotations:
        for (const pair of pairs(section.value)) {
          if (pair[0] === 'x-opt-scheduled-enqueue-time') parsed.scheduledFor = Number(decode(pair[2])) || undefined;
          if (!BROKER_ANNOTATIONS.has(pair[0])) parsed.annotations.push(pair);
        }
        break;
      case SECTION.properties:
        parsed.properties = section.bytes;
        parsed.messageId = text(list(section.value)[0]?.value);
        break;
      case SECTION.applicationProperties:
        parsed.applicationProperties = pairs(section.value);
        break;
      case SECTION.data:
      case SECTION.sequence:
      case SECTION.value:
        body.push(section.bytes);
        break;
      default: // delivery annotations and footer are for one hop
    }
  }
  parsed.body = Buffer.concat(body);
  return parsed;
}

function text(id) {
  if (id === undefined || id === null) return '';
  return Buffer.isBuffer(id) ? id.toString('hex') : String(id);
}

/** parseBatch gives the messages of a batch: each data section is an encoded message. */
export function parseBatch(buffer) {
  const messages = sections(buffer).filter((s) => s.code === SECTION.data).map((s) => parse(decode(s.value)));
  if (messages.length === 0) throw new DecodeError('a batch without messages');
  return messages;
}

const STATE = { active: 0, deferred: 1, scheduled: 2 };

/** encodeMessage writes a message as a receiver gets it. lockedUntil is in ms, undefined when it is not locked. */
export function encodeMessage(m, lockedUntil) {
  const header = types.described_nc(types.wrap_ulong(SECTION.header), types.wrap_list([
    m.durable ?? true,
    m.priority === undefined ? null : types.wrap_ubyte(m.priority),
    m.ttl === undefined ? null : types.wrap_uint(m.ttl),
    false,
    types.wrap_uint(m.deliveryCount), // of the deliveries before this one
  ]));
  const annotations = {
    'x-opt-sequence-number': types.wrap_long(m.sequence),
    'x-opt-enqueue-sequence-number': types.wrap_long(m.enqueuedSequence ?? m.sequence),
    'x-opt-enqueued-time': types.wrap_timestamp(m.enqueuedAt),
    'x-opt-message-state': types.wrap_int(STATE[m.state]),
  };
  if (lockedUntil !== undefined) annotations['x-opt-locked-until'] = types.wrap_timestamp(lockedUntil);
  if (m.scheduledFor !== undefined) annotations['x-opt-scheduled-enqueue-time'] = types.wrap_timestamp(m.scheduledFor);
  if (m.deadLetterSource !== undefined) annotations['x-opt-deadletter-source'] = m.deadLetterSource;
  const own = Object.entries(annotations).map(([key, value]) => [key, encode(types.wrap_symbol(key)), encode(types.wrap(value))]);
  const parts = [encode(header), encodeMap(SECTION.messageAnnotations, [...own, ...m.annotations]), m.properties];
  if (m.applicationProperties.length > 0) parts.push(encodeMap(SECTION.applicationProperties, m.applicationProperties));
  parts.push(m.body);
  return Buffer.concat(parts);
}

/** describe gives a message as JSON people can read; the body in base64. */
export function describe(m) {
  const fields = list(sections(m.properties)[0].value);
  const properties = {};
  fields.forEach((field, i) => {
    if (field.value !== null && field.value !== undefined) properties[PROPERTIES[i]] = plain(field.value);
  });
  const kinds = { [SECTION.data]: 'data', [SECTION.sequence]: 'sequence', [SECTION.value]: 'value' };
  const body = m.body.length > 0 ? sections(m.body) : [];
  return {
    sequenceNumber: m.sequence,
    state: m.state,
    messageId: m.messageId,
    enqueuedTime: new Date(m.enqueuedAt).toISOString(),
    scheduledEnqueueTime: m.scheduledFor === undefined ? undefined : new Date(m.scheduledFor).toISOString(),
    deliveryCount: m.deliveryCount,
    deadLetterSource: m.deadLetterSource,
    properties,
    applicationProperties: Object.fromEntries(m.applicationProperties.map(([key, , value]) => [key, plain(decode(value))])),
    bodyType: kinds[body[0]?.code] ?? 'none',
    body: Buffer.concat(body.map(bodyBytes)).toString('base64'),
  };
}

function bodyBytes(section) {
  const value = decode(section.value);
  if (Buffer.isBuffer(value)) return value;
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(plain(value)));
}

function plain(value) {
  if (Buffer.isBuffer(value)) return value.toString('base64');
  if (value instanceof Date) return value.toISOString();
  return value;
}
