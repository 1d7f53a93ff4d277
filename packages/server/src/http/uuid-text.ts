/** Whether a text is a uuid (RFC 9562, section 4). What is none names no object: it is answered like a missing one. */

const form = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return form.test(text);
}
