import { Clock } from './clock.mjs';
import { Faults } from './faults.mjs';
import { Queue } from './queue.mjs';

const defaults = {
  lockDuration: 60_000,
  maxDeliveryCount: 10,
  requiresDuplicateDetection: false,
  duplicateDetectionWindow: 600_000,
  maxMessageSize: 262_144,
  maxQueueDepth: 0, // no limit
};

// The limits of the service, but for the lower end of lockDuration (5 s there): tests may want shorter ones.
const limits = {
  lockDuration: [1, 300_000],
  maxDeliveryCount: [1, 2000],
  duplicateDetectionWindow: [20_000, 604_800_000],
  maxMessageSize: [1024, 104_857_600],
  maxQueueDepth: [0, Number.MAX_SAFE_INTEGER],
};

function settingsOf(given) {
  for (const key of Object.keys(given)) {
    if (key !== 'name' && !(key in defaults)) throw new Error(`queue ${given.name}: there is no setting ${key}`);
  }
  const settings = { ...defaults, ...given };
  if (!/^[A-Za-z0-9]([\w./-]{0,258}[A-Za-z0-9])?$/.test(settings.name ?? '')) throw new Error(`${settings.name} is no name for a queue`);
  for (const [key, [least, most]] of Object.entries(limits)) {
    if (!Number.isInteger(settings[key]) || settings[key] < least || settings[key] > most) {
      throw new Error(`queue ${settings.name}: ${key} is ${settings[key]}; it goes from ${least} to ${most}`);
    }
  }
  settings.maxQueueDepth ||= Infinity;
  return settings;
}

/** Broker is all queues, the clock they go by, and the faults. */
export class Broker {
  clock = new Clock();
  faults = new Faults();
  /** Called with a queue that may have something to deliver. */
  onReady = () => {};
  #queues = new Map(); // by lower-case path, dead-letter sub-queues too
  #timer;

  constructor(queues) {
    for (const given of queues) {
      const queue = new Queue(settingsOf(given));
      if (this.queue(queue.path)) throw new Error(`the queue ${queue.path} is there twice`);
      for (const q of [queue, queue.deadLetters]) this.#queues.set(q.path.toLowerCase(), q);
    }
  }

  /** queue finds a queue by its path, in upper or lower case as the service does. */
  queue(path) {
    return this.#queues.get(path.toLowerCase());
  }

  queues() {
    return [...this.#queues.values()];
  }

  /** changed is to be called after every change of a queue: it delivers, and sets the alarm for what comes by itself. */
  changed(queue) {
    this.onReady(queue);
    if (queue.deadLetters) this.onReady(queue.deadLetters);
    this.setAlarm();
  }

  /** pass does what time does by itself, in all queues. */
  pass() {
    const now = this.clock.now();
    for (const queue of this.#queues.values()) queue.tick(now);
    for (const queue of this.#queues.values()) this.onReady(queue);
    this.setAlarm();
  }

  advance(ms) {
    this.clock.offset += ms;
    this.pass();
  }

  /** setAlarm sees to it that what comes by itself is not forgotten. */
  setAlarm() {
    const next = Math.min(...this.queues().map((q) => q.nextDue()));
    if (next === this.#timer?.at) return;
    clearTimeout(this.#timer?.handle);
    this.#timer = undefined;
    if (next === Infinity) return;
    const longest = 2 ** 31 - 1; // a longer timeout would fire at once
    const handle = setTimeout(() => {
      this.#timer = undefined;
      this.pass();
    }, Math.min(Math.max(next - this.clock.now(), 0), longest));
    this.#timer = { at: next, handle };
  }
}
