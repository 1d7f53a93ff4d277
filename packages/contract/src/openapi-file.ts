/**
 * The text of `generated/openapi.json`: every operation that the interface declares. A running server describes only
 * those that it serves, at `/openapi.json`.
 */
import { openapiDocument } from './openapi.ts';
import { operations } from './operations.ts';

export function renderOpenapiFile(): string {
  return `${JSON.stringify(openapiDocument(operations, { baseUrl: '/v1' }), null, 2)}\n`;
}
