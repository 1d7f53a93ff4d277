/** Owns what the address of a webhook may look like. Where it leads is not asked here: names are not resolved. */

export type TargetUrl =
  | { readonly ok: true; readonly url: URL }
  /** `sentence` follows the field's name. */
  | { readonly ok: false; readonly code: string; readonly sentence: string };

const refused = (code: string, sentence: string): TargetUrl => ({ ok: false, code, sentence });

/** Never repeats what it was given: an address may hold a password or a token. */
export function parseTargetUrl(text: string): TargetUrl {
  if (!URL.canParse(text)) {
    return refused('malformed', 'must be an absolute URL, such as https://hooks.example.net/levee');
  }
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return refused(
      'not_allowed',
      `must be an http or https URL, received one of the scheme ${url.protocol.slice(0, -1)}`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    return refused(
      'not_allowed',
      'must hold no user name and no password; put a token into the path or the query instead',
    );
  }
  if (url.hash !== '') return refused('not_allowed', 'must hold no fragment (after #), which is never sent');
  return { ok: true, url };
}

/** The host as a resolver or a socket takes it: IPv6 without brackets, names without a trailing dot. */
export function hostOf(url: URL): string {
  const { hostname } = url;
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname.replace(/\.$/, '');
}
