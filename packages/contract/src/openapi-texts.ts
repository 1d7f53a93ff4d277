/** What the OpenAPI document says around the operations: for whoever reads it first. No fact that a schema holds. */

export const title = 'Network protection management service';

/** CommonMark. */
export const description = `
Firewall rules, filters, flowrules, attacks, tunnels, reverse DNS and the users of a network provider.

**Keys.** Every operation needs an API key in the header \`x-api-key\`. The key alone says who calls: the *operator* runs
the installation, a *provider* owns address space and has users, a *user* acts on the subnets that the provider gave it.
What belongs to another account does not exist for a caller: 404.

**Answers.** Success is always 200. An error is \`{"error": "<code>", "message": "<sentence>"}\`, and \`details\` lists
everything that is wrong with the request, not only the first. \`X-Request-Id\` names the request in the service's log; one
that is sent is kept.

**States.** A request stores what is wanted and is answered at once. Routers and servers follow; \`state\` and \`applied\`
say how far they have come and, where something is not in force, why. \`Prefer: wait=10\` holds the answer of a change
until that is known, or ten seconds. A deleted object is marked for deletion, and is gone (404) once no router has it.

**Lists** are complete, oldest first, and streamed. With \`limit\` they come in pages; the header \`Link\` leads to the next.

**Repeats.** \`Idempotency-Key\` on a POST makes it safe to send again for 24 hours: the answer is replayed. A GET of
one object has an \`ETag\`; \`If-None-Match\` gives 304.

Operations tagged *extension* and *operator* are additions to the given interface. A client that knows none of them
works all the same.
`.trim();

/** In the order in which somebody new needs them. The viewer shows `x-displayName` in place of the name. */
export const tags = [
  { name: 'DDoS Mitigation', description: "The caller's own rules, filters, flowrules and attacks." },
  { name: 'DDoS Mitigation [Provider]', description: "What concerns all of a provider's users." },
  { name: 'Network', description: 'Tunnels and reverse DNS.' },
  {
    name: 'extension',
    'x-displayName': 'Extensions',
    description: 'Beyond the given interface; clients written for that alone need none of it.',
  },
  { name: 'operator', 'x-displayName': 'Operator', description: 'For whoever runs the installation.' },
] as const;

export function servers(baseUrl: string) {
  return [
    { url: baseUrl, description: 'The installation that this document came from.' },
    {
      url: 'https://{host}/v1',
      description: 'Another installation.',
      variables: {
        host: { default: 'levee.example.net', description: 'Its host name, with the port where that is not 443.' },
      },
    },
  ];
}
