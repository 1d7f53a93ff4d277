/** The rival of the reading benchmark: node:http that answers the same bytes to everything, and nothing else. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

process.on('message', (body: string) => {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json; charset=utf-8');
    response.setHeader('content-length', Buffer.byteLength(body));
    response.end(body);
  });
  server.listen(0, '127.0.0.1', () => {
    process.send?.({ address: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  });
});
process.on('disconnect', () => process.exit(0));
