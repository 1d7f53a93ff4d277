/** A pattern in words, for whoever is told that a value does not have it: a regular expression is no sentence. */

/** `words` follow "must be". */
export function inWords(words: string): { readonly 'x-in-words': string } {
  return { 'x-in-words': words };
}
