// What a queue is, without a word of AMQP: messages in the order of their sequence numbers, locks that expire, a history of
// message ids, and a sub-queue for dead letters. Nothing here waits or reads a clock: the caller says what
// time it is.
import { randomBytes } from 'node:crypto';
import { merge, changes } from './encoding.mjs';
import { Heap } from './heap.mjs';

/** A refusal, with the AMQP condition that the sender gets. */
export class Refused extends Error {
  constructor(condition, description) {
    super(description);
    this.condition = condition;
  }
}

const longestId = 128; // characters (service limit)

function stats() {
  return {
    sent: 0, duplicates: 0, refused: 0, scheduled: 0, cancelled: 0, delivered: 0, completed: 0, abandoned: 0,
    released: 0, expired: 0, deadLettered: 0, timeToLiveExpired: 0, maxDeliveries: 0,
  };
}

/**
 * Queue is a queue, or the dead-letter sub-queue of one.
 *
 * A message is a plain object: sequence, enqueuedSequence, state (active | scheduled), enqueuedAt, scheduledFor,
 * deliveryCount (deliveries that came to nothing), deadLetterSource, lock (its token while it is locked), and what
 * encoding.parse gives.
 */
export class Queue {
  /** Names the queue in addresses: NAME or NAME/$DeadLetterQueue. */
  path;
  settings;
  stats = stats();
  deadLetters; // undefined in a dead-letter queue
  #messages = new Map(); // by sequence number, in its order
  #next = 1;
  // The heaps are not cleaned when a message goes: an entry that says something else than the message is passed over.
  #ready = new Heap((a, b) => a.sequence < b.sequence);
  #scheduled = new Heap((a, b) => a.at < b.at || (a.at === b.at && a.sequence < b.sequence));
  #expiring = new Heap((a, b) => a.at < b.at);
  #perishing = new Heap((a, b) => a.at < b.at);
  #locks = new Map(); // by token: {message, until}
  #seen = new Map(); // message id -> when, the oldest first

  constructor(settings, parent) {
    this.settings = settings;
    this.path = parent ? `${parent.path}/$DeadLetterQueue` : settings.name;
    if (!parent) this.deadLetters = new Queue({ ...settings, maxDeliveryCount: Infinity, requiresDuplicateDetection: false }, this);
  }

  get locked() {
    return this.#locks.size;
  }

  /** Counts as the service gives them: a locked message is active. */
  counts() {
    let scheduled = 0;
    for (const m of this.#messages.values()) if (m.state === 'scheduled') scheduled++;
    return { active: this.#messages.size - scheduled, scheduled, locked: this.locked };
  }

  // ---- sending

  /** send takes all the messages or, by throwing Refused, none. It gives their sequence numbers. */
  send(parsed, now) {
    this.tick(now);
    for (const m of parsed) this.#check(m);
    if (this.#messages.size + parsed.length > (this.settings.maxQueueDepth ?? Infinity)) {
      throw new Refused('amqp:resource-limit-exceeded', `the queue ${this.path} is full`);
    }
    return parsed.map((m) => this.#accept(m, now));
  }

  #check(m) {
    if (m.messageId.length > longestId) throw new Refused('com.microsoft:argument-error', `a message id has at most ${longestId} characters`);
    if (m.size > this.settings.maxMessageSize) {
      throw new Refused('amqp:link:message-size-exceeded', `a message of ${m.size} bytes; the queue takes ${this.settings.maxMessageSize}`);
    }
  }

  #accept(m, now) {
    if (this.#isDuplicate(m.messageId, now)) {
      this.stats.duplicates++;
      return 0; // dropped without a word, as the service does: no message has this number
    }
    this.stats.sent++;
    const stored = { ...m, enqueuedAt: now, deliveryCount: 0, state: 'active' };
    if (m.scheduledFor > now) {
      stored.state = 'scheduled';
      this.stats.scheduled++;
    }
    this.#store(stored);
    return stored.sequence;
  }

  #isDuplicate(id, now) {
    if (!this.settings.requiresDuplicateDetection || id === '') return false;
    if (this.#seen.has(id)) return true;
    this.#seen.set(id, now);
    return false;
  }

  // store gives a message its number and its place.
  #store(m) {
    m.sequence = this.#next++;
    this.#messages.set(m.sequence, m);
    if (m.state === 'scheduled') {
      this.#scheduled.push({ at: m.scheduledFor, sequence: m.sequence });
      return;
    }
    this.#ready.push(m);
    if (m.ttl !== undefined && this.deadLetters) this.#perishing.push({ at: m.enqueuedAt + m.ttl, sequence: m.sequence });
  }

  #remove(m) {
    this.#messages.delete(m.sequence);
    if (m.lock) this.#locks.delete(m.lock);
  }

  /** cancel takes scheduled messages back. It says whether all of them were there; if not, none is taken back. */
  cancel(sequences, now) {
    this.tick(now);
    const found = sequences.map((s) => this.#messages.get(s)).filter((m) => m?.state === 'scheduled');
    if (found.length !== sequences.length) return false;
    for (const m of found) this.#remove(m);
    this.stats.cancelled += found.length;
    return true;
  }

  // ---- receiving

  /** hasReady says whether take would give a message. */
  hasReady() {
    for (let m = this.#ready.peek(); m !== undefined; m = this.#ready.peek()) {
      if (this.#messages.get(m.sequence) === m && !m.lock) return true;
      this.#ready.pop();
    }
    return false;
  }

  /** take locks the next message: {message, token, until}. undefined when there is none. */
  take(now) {
    if (!this.hasReady()) return undefined;
    const message = this.#ready.pop();
    const token = randomBytes(16);
    message.lock = token.toString('hex');
    const until = now + this.settings.lockDuration;
    this.#lock(message, until);
    this.#countDelivery(message);
    return { message, token, until };
  }

  /** takeAndDelete gives the next message and forgets it. */
  takeAndDelete() {
    if (!this.hasReady()) return undefined;
    const message = this.#ready.pop();
    this.#countDelivery(message);
    this.#remove(message);
    this.stats.completed++;
    return message;
  }

  #countDelivery(m) {
    this.stats.delivered++;
    this.stats.maxDeliveries = Math.max(this.stats.maxDeliveries, m.deliveryCount + 1);
  }

  #lock(message, until) {
    this.#locks.set(message.lock, { message, until });
    this.#expiring.push({ at: until, token: message.lock });
  }

  // held gives the message of a token (hex), unless its lock is lost.
  #held(token, now) {
    this.tick(now);
    return this.#locks.get(token)?.message;
  }

  /** renew gives the new end of the lock, or undefined: the lock is lost. */
  renew(token, now) {
    const m = this.#held(token, now);
    if (!m) return undefined;
    const until = now + this.settings.lockDuration;
    this.#lock(m, until);
    return until;
  }

  /** complete, abandon, release and deadLetter say whether the lock was still held. If not, they do nothing. */
  complete(token, now) {
    const m = this.#held(token, now);
    if (!m) return false;
    this.#remove(m);
    this.stats.completed++;
    return true;
  }

  abandon(token, now, modified) {
    const m = this.#held(token, now);
    if (!m) return false;
    this.stats.abandoned++;
    m.applicationProperties = merge(m.applicationProperties, changes(modified));
    this.#return(m, now, 1);
    return true;
  }

  release(token, now) {
    const m = this.#held(token, now);
    if (!m) return false;
    this.stats.released++;
    this.#return(m, now, 0);
    return true;
  }

  deadLetter(token, now, modified) {
    const m = this.#held(token, now);
    if (!m) return false;
    this.#moveToDeadLetters(m, modified);
    return true;
  }

  /** lose ends a lock before its time, as the service does when it moves a queue. */
  lose(token, now) {
    const m = this.#held(token, now);
    if (!m) return;
    this.stats.expired++;
    this.#return(m, now, 1);
  }

  // return makes a locked message available again, unless that was its last delivery.
  #return(m, now, failed) {
    this.#locks.delete(m.lock);
    m.lock = undefined;
    if (this.deadLetters) m.deliveryCount += failed; // a dead letter keeps the count it came with
    if (m.deliveryCount >= this.settings.maxDeliveryCount) {
      this.#moveToDeadLetters(m, {
        DeadLetterReason: 'MaxDeliveryCountExceeded',
        DeadLetterErrorDescription: `Message could not be consumed after ${this.settings.maxDeliveryCount} delivery attempts.`,
      });
      return;
    }
    if (this.#perished(m, now)) return;
    this.#ready.push(m);
  }

  #moveToDeadLetters(m, modified) {
    this.#remove(m);
    this.stats.deadLettered++;
    this.deadLetters.#store({
      ...m,
      lock: undefined,
      enqueuedSequence: m.sequence,
      deadLetterSource: this.settings.name,
      // A receiver of dead letters sees the number of the last delivery.
      deliveryCount: Math.min(m.deliveryCount, this.settings.maxDeliveryCount - 1),
      applicationProperties: merge(m.applicationProperties, changes(modified)),
    });
  }

  // ---- time

  /** tick does what time does by itself: locks end, scheduled messages arrive, old messages and old ids go. */
  tick(now) {
    for (let due; (due = this.#due(this.#scheduled, now));) {
      const m = this.#messages.get(due.sequence);
      if (m?.state === 'scheduled') this.#activate(m);
    }
    for (let due; (due = this.#due(this.#expiring, now));) {
      const lock = this.#locks.get(due.token);
      if (lock && lock.until <= now) {
        this.stats.expired++;
        this.#return(lock.message, now, 1);
      }
    }
    for (let due; (due = this.#due(this.#perishing, now));) {
      const m = this.#messages.get(due.sequence);
      if (m && !m.lock) this.#perished(m, now);
    }
    const oldest = now - this.settings.duplicateDetectionWindow;
    for (const [id, at] of this.#seen) {
      if (at > oldest) break;
      this.#seen.delete(id);
    }
  }

  #due(heap, now) {
    return heap.peek()?.at <= now ? heap.pop() : undefined;
  }

  // activate appends a scheduled message to the queue. Its number as a scheduled one is valid no more.
  #activate(m) {
    this.#remove(m);
    this.#store({ ...m, state: 'active', enqueuedAt: m.scheduledFor });
  }

  #perished(m, now) {
    if (m.ttl === undefined || !this.deadLetters || m.enqueuedAt + m.ttl > now) return false;
    this.#remove(m);
    this.stats.timeToLiveExpired++;
    return true;
  }

  /** nextDue is when tick has something to do; Infinity when never. */
  nextDue() {
    return Math.min(this.#scheduled.peek()?.at ?? Infinity, this.#expiring.peek()?.at ?? Infinity, this.#perishing.peek()?.at ?? Infinity);
  }

  // ---- looking and clearing

  /** peek gives up to `count` messages from a sequence number on, locked and scheduled ones too. */
  peek(from, count) {
    const found = [];
    for (const m of this.#messages.values()) {
      if (found.length >= count) break;
      if (m.sequence >= from) found.push(m);
    }
    return found;
  }

  /** purge removes all messages, scheduled and locked ones too, and says how many. Ids that were seen stay seen. */
  purge() {
    const all = [...this.#messages.values()];
    for (const m of all) this.#remove(m);
    return all.length;
  }
}
