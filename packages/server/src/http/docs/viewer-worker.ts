/**
 * Runs in a thread of its own, once: loads the package that holds the viewer, takes the script that it serves, and
 * hands it over compressed. The package takes 40 MB and 140 ms to load and exports nothing but its routes; neither
 * belongs into the process that answers requests.
 */
import { hash } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import { constants, gzipSync } from 'node:zlib';
import scalar from '@scalar/fastify-api-reference';
import Fastify from 'fastify';

const app = Fastify();
await app.register(scalar, { routePrefix: '/viewer', configuration: { url: 'unused' } });
const { statusCode, rawPayload } = await app.inject({ url: '/viewer/js/scalar.js' });
if (statusCode !== 200) throw new Error(`the viewer's package answers ${statusCode} for its script`);
const gzipped = gzipSync(rawPayload, { level: constants.Z_BEST_SPEED });
parentPort?.postMessage({ gzipped, tag: `"${hash('sha1', rawPayload, 'base64url')}"` });
