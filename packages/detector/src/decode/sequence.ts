/**
 * Owns what an exporter's sequence numbers say of datagrams that did not arrive. Never guesses: after a restart, or after a
 * datagram whose count is unknown, it begins anew and reports nothing missing.
 */

/** A datagram that is so many datagrams behind is a late one; farther back the exporter began anew. */
const LATE_DATAGRAMS = 64;
/** A leap of more records than this is a new beginning, not a loss. */
const LONGEST_LOSS = 1_000_000;

/** The numbers of one stream of datagrams, modulo 2^32. */
export class Sequence {
  #next = -1;
  #previous = 0;
  #units = 1;
  #options = 0;
  #uptime = -1;

  /**
   * Notes a datagram with this number that counts as `units` (1 where datagrams are counted, else its records; -1: unknown), of
   * which `options` are no flows: not all exporters count those. `uptime` in milliseconds, -1 where the format has none. Returns how many datagrams are missing before it; where records are
   * counted, an estimate by those that datagrams have.
   */
  note(number: number, units: number, uptime: number, options = 0): number {
    const isRestarted = uptime >= 0 && this.#uptime >= 0 && ((uptime - this.#uptime) | 0) < -5_000;
    this.#uptime = uptime;
    let missing = 0;
    if (this.#next >= 0 && units >= 0 && !isRestarted) {
      const most = units > this.#units ? units : this.#units;
      const ahead = (number - this.#next) | 0;
      // softflowd counts a message's own records in its number, RFC 7011 those before it: either way none is missing.
      const own = (number - this.#previous - units) | 0;
      const isNext = (ahead <= 0 && ahead >= -this.#options) || (own <= 0 && own >= -options);
      if (!isNext) {
        if (ahead < 0 && number > units && -ahead <= most * LATE_DATAGRAMS) return 0;
        if (ahead > 0 && ahead <= LONGEST_LOSS) missing = Math.ceil(ahead / Math.max(most, 1));
      }
    }
    this.#previous = number;
    this.#next = units < 0 ? -1 : (number + units) % 0x1_0000_0000;
    if (units > 0) this.#units = units;
    this.#options = options;
    return missing;
  }
}
