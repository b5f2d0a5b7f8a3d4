// Faults: what goes wrong, on request, where a client would see it.

const effects = {
  send: ['reject', 'drop', 'hang', 'detach'],
  settle: ['lock-lost', 'reject', 'drop', 'hang', 'detach'],
  attach: ['refuse', 'drop'],
};

/** A fault that makes no sense. */
export class BadFault extends Error {}

/**
 * Faults is the list of rules. A rule has
 *   queue      the queue it is for ('' = all of them)
 *   on         send | settle | attach
 *   then       reject (answer with condition), drop (end the connection), hang (never answer), detach (end the link with
 *              condition), lock-lost (take the lock away and say so), refuse (refuse the link with condition)
 *   apply      what was asked for is done all the same, and only the answer is spoiled
 *   skip       so many pass first
 *   every      only every n-th of the rest
 *   times      it strikes so often, then it is over (0 = for ever)
 * The first rule that strikes is the one that counts.
 */
export class Faults {
  #rules = [];

  add(rule) {
    if (!effects[rule.on]) throw new BadFault(`on is one of ${Object.keys(effects).join(', ')}`);
    if (!effects[rule.on].includes(rule.then)) throw new BadFault(`then is one of ${effects[rule.on].join(', ')} with on ${rule.on}`);
    if (['reject', 'detach', 'refuse'].includes(rule.then) && !rule.condition) throw new BadFault(`then ${rule.then} needs a condition`);
    if (rule.apply && ['lock-lost', 'refuse'].includes(rule.then)) throw new BadFault(`then ${rule.then} cannot apply`);
    this.#rules.push({ ...rule, seen: 0, struck: 0 });
  }

  clear() {
    this.#rules = [];
  }

  list() {
    return this.#rules;
  }

  /** strike gives the rule that strikes, and counts. undefined when nothing goes wrong. */
  strike(on, queue) {
    for (const rule of this.#rules) {
      if (rule.on !== on || (rule.queue && rule.queue.toLowerCase() !== queue.path.toLowerCase())) continue;
      if (rule.times && rule.struck >= rule.times) continue;
      rule.seen++;
      const n = rule.seen - (rule.skip ?? 0);
      if (n <= 0 || n % (rule.every || 1) !== 0) continue;
      rule.struck++;
      return rule;
    }
    return undefined;
  }
}
