/**
 * The page that shows the interface's description: its HTML, the script that starts the viewer, and the policy that
 * holds both to this origin. What the viewer would fetch elsewhere (fonts, its maker's proxy, search, chat) is switched
 * off here, and could not leave if it were not.
 */

export const pageHtml = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Levee: the interface</title>
    <link rel="icon" href="data:,">
  </head>
  <body>
    <div id="reference"></div>
    <noscript>This page needs JavaScript. The description itself: <a href="docs/openapi.json">openapi.json</a>.</noscript>
    <script src="docs/viewer.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`;

const configuration = {
  url: 'docs/openapi.json',
  pageTitle: 'Levee: the interface',
  theme: 'default',
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  hideClientButton: true,
  documentDownloadType: 'direct',
  // A key that was typed in is gone with the page.
  persistAuth: false,
  authentication: { preferredSecurityScheme: 'apiKey' },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  defaultOpenAllTags: true,
};

/** A file of its own: the policy allows no script inside the page. */
export const startScript = `Scalar.createApiReference('#reference', ${JSON.stringify(configuration, null, 2)});\n`;

/** CSP level 3. Styles: the viewer writes them into the page itself. */
export const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
