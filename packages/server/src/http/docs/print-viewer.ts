/**
 * A program of its own, run once by the server: loads the package that holds the viewer, takes the script that it serves,
 * and writes it to standard output, compressed. The package exports nothing but its routes.
 */
import { constants, gzipSync } from 'node:zlib';
import scalar from '@scalar/fastify-api-reference';
import Fastify from 'fastify';

const app = Fastify();
await app.register(scalar, { routePrefix: '/viewer', configuration: { url: 'unused' } });
const { statusCode, rawPayload } = await app.inject({ url: '/viewer/js/scalar.js' });
if (statusCode !== 200) throw new Error(`the viewer's package answers ${statusCode} for its script`);
process.stdout.write(gzipSync(rawPayload, { level: constants.Z_BEST_SPEED }));
