/**
 * Reads what a detector sent, member by member, to typed values within bounds. The first fault of a member ends it, as a `Refused`
 * with the field: the sender is a program of ours, nobody fills in a form. Knows no message.
 */

export class Refused extends Error {
  /** A JSON pointer. */
  readonly field: string;
  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export type Members = Readonly<Record<string, unknown>>;
/** Of one value at one place. */
export type Read<T> = (value: unknown, field: string) => T;

export const members: Read<Members> = (value, field) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Refused(field, 'must be an object');
  }
  return value as Members;
};

export function listOf<T>(most: number, item: Read<T>): Read<T[]> {
  return (value, field) => {
    const entries = asArray(value, field);
    if (entries.length > most) throw new Refused(field, `has ${entries.length} entries; at most ${most} are allowed`);
    return entries.map((each, index) => item(each, `${field}/${index}`));
  };
}

/** Told of what is not taken. */
export type LeaveOut = (fault: Refused) => void;

/** Takes what can be read, up to `most`: one that cannot costs no other. */
export function readableOf<T>(most: number, item: Read<T>, leaveOut: LeaveOut): Read<T[]> {
  return (value, field) => {
    const entries = readable(asArray, leaveOut)(value, field) ?? [];
    if (entries.length > most) {
      leaveOut(new Refused(field, `has ${entries.length} entries; the first ${most} are taken`));
    }
    return entries.slice(0, most).flatMap((each, index) => {
      const read = readable(item, leaveOut)(each, `${field}/${index}`);
      return read === undefined ? [] : [read];
    });
  };
}

/** Undefined: it cannot be read, and is left out. */
export function readable<T>(item: Read<T>, leaveOut: LeaveOut): Read<T | undefined> {
  return (value, field) => {
    try {
      return item(value, field);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      leaveOut(error);
      return undefined;
    }
  };
}

const asArray: Read<unknown[]> = (value, field) => {
  if (!Array.isArray(value)) throw new Refused(field, 'must be an array');
  return value;
};

/** Names are letters, digits, `_`, `.` and `-`. */
export function recordOf<T>(most: number, item: Read<T>): Read<Record<string, T>> {
  return (value, field) => {
    const entries = Object.entries(members(value, field));
    if (entries.length > most) throw new Refused(field, `has ${entries.length} members; at most ${most} are allowed`);
    return Object.fromEntries(
      entries.map(([name, each]) => {
        if (!/^[A-Za-z][\w.-]{0,63}$/.test(name)) throw new Refused(field, 'has a member whose name is not allowed');
        return [name, item(each, `${field}/${name}`)];
      }),
    );
  };
}

export function optional<T>(item: Read<T>): Read<T | undefined> {
  return (value, field) => (value === undefined ? undefined : item(value, field));
}

/** Finite, from `least` to `most`. */
export function numberFrom(least: number, most: number): Read<number> {
  return (value, field) => {
    if (typeof value !== 'number' || !(value >= least && value <= most)) {
      throw new Refused(field, `must be a number from ${least} to ${most}`);
    }
    return value;
  };
}

export function wholeFrom(least: number, most: number): Read<number> {
  return (value, field) => {
    if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) {
      throw new Refused(field, `must be a whole number from ${least} to ${most}`);
    }
    return value as number;
  };
}

/** Rounded: what was scaled by sampling rates is no whole number. */
export const counted: Read<number> = (value, field) => {
  if (typeof value !== 'number' || !(value >= 0)) throw new Refused(field, 'must be a number from 0');
  return Math.min(Math.round(value), Number.MAX_SAFE_INTEGER);
};

/** Milliseconds since 1970, in whole ones. */
export const moment: Read<number> = (value, field) => {
  // Beyond it Date has no time (ECMA-262, 21.4.1.1).
  if (typeof value !== 'number' || !(value >= 0 && value <= 8.64e15)) {
    throw new Refused(field, 'must be milliseconds since 1970');
  }
  return Math.round(value);
};

export const share: Read<number> = numberFrom(0, 1);

export const uuid: Read<string> = (value, field) => {
  if (typeof value !== 'string' || !UUID.test(value)) throw new Refused(field, 'must be a uuid in lower case');
  return value;
};

export function oneOf<const T extends string>(words: readonly T[]): Read<T> {
  return (value, field) => {
    const found = words.find((word) => word === value);
    if (found === undefined) throw new Refused(field, `must be one of ${words.join(', ')}`);
    return found;
  };
}

/** Without control characters: PostgreSQL's text holds no NUL, and people read it. */
export function textUpTo(most: number): Read<string> {
  return (value, field) => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
    if (typeof value !== 'string' || value.length > most || /[\u0000-\u001f\u007f-\u009f]/.test(value)) {
      throw new Refused(field, `must be text of at most ${most} characters, without control characters`);
    }
    return value;
  };
}
