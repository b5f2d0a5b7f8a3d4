// The request/response operations: $cbs, where a client shows its token, and NAME/$management.
import rhea from 'rhea';
import { encodeMessage, parse } from './encoding.mjs';
import { Refused } from './queue.mjs';

const { types } = rhea;

const ok = (body) => ({ status: 200, description: 'OK', body });
const refuse = (status, condition, description) => ({ status, condition, description });
const lockLost = refuse(410, 'com.microsoft:message-lock-lost', 'The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue.');

// What the service takes for a refused send, as the number of an answer.
const statusOf = {
  'amqp:resource-limit-exceeded': 403,
  'amqp:link:message-size-exceeded': 403,
  'com.microsoft:argument-error': 400,
};

/** cbs answers a request to $cbs. Any token will do. */
export function cbs(request) {
  const operation = request.application_properties?.operation;
  if (operation !== 'put-token') return { status: 400, description: `$cbs does not know ${operation}` };
  return { status: 202, description: 'Accepted' };
}

/** manage answers a request to the $management of a queue. */
export function manage(queue, request, now) {
  const operation = request.application_properties?.operation;
  const body = request.body ?? {};
  switch (operation) {
    case 'com.microsoft:renew-lock':
      return renew(queue, body, now);
    case 'com.microsoft:schedule-message':
      return schedule(queue, body, now);
    case 'com.microsoft:cancel-scheduled-message':
      if (queue.cancel(body['sequence-numbers'], now)) return ok();
      return refuse(404, 'com.microsoft:message-not-found', 'there is no scheduled message of that sequence number');
    case 'com.microsoft:update-disposition':
      return settle(queue, body, now);
    case 'com.microsoft:peek-message':
      return peek(queue, body, now);
    default:
      return refuse(501, 'amqp:not-implemented', `the emulator has no ${operation}`);
  }
}

// In a request the token is a .NET GUID: its first three parts are little-endian, unlike in the delivery tag.
function tokens(body) {
  return body['lock-tokens'].map((uuid) => {
    const b = Buffer.from(uuid);
    b.subarray(0, 4).reverse();
    b.subarray(4, 6).reverse();
    b.subarray(6, 8).reverse();
    return b.toString('hex');
  });
}

function renew(queue, body, now) {
  const ends = tokens(body).map((token) => queue.renew(token, now));
  if (ends.includes(undefined)) return lockLost;
  return ok({ expirations: types.wrap_array(ends, types.Timestamp.typecode) });
}

function schedule(queue, body, now) {
  if (!queue.deadLetters) return refuse(403, 'amqp:not-allowed', 'nobody sends to a dead-letter queue');
  try {
    const sequences = queue.send(body.messages.map(({ message }) => parse(message)), now);
    return ok({ 'sequence-numbers': types.wrap_array(sequences, types.Long.typecode) });
  } catch (err) {
    if (!(err instanceof Refused)) throw err;
    queue.stats.refused += body.messages.length;
    return refuse(statusOf[err.condition], err.condition, err.message);
  }
}

function settle(queue, body, now) {
  const settleOne = {
    completed: (token) => queue.complete(token, now),
    abandoned: (token) => queue.abandon(token, now, body['properties-to-modify']),
    suspended: (token) => queue.deadLetter(token, now, {
      ...body['properties-to-modify'],
      DeadLetterReason: body['deadletter-reason'] ?? '',
      DeadLetterErrorDescription: body['deadletter-description'] ?? '',
    }),
  }[body['disposition-status']];
  if (!settleOne) return refuse(501, 'amqp:not-implemented', `the emulator has no disposition ${body['disposition-status']}`);
  if (body['disposition-status'] === 'suspended' && !queue.deadLetters) return refuse(403, 'amqp:not-allowed', 'a dead letter cannot be dead-lettered');
  return tokens(body).map(settleOne).includes(false) ? lockLost : ok();
}

function peek(queue, body, now) {
  queue.tick(now);
  const found = queue.peek(body['from-sequence-number'] ?? 0, body['message-count'] ?? 1);
  if (found.length === 0) return { status: 204, description: 'there are no messages' };
  return ok({ messages: found.map((m) => ({ message: encodeMessage(m) })) });
}
