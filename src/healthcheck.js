// The container's health check: is the process alive? Plain JavaScript and nothing but Node, for the image has no curl.
const secure = Boolean(process.env.TLS_CERT_FILE);
const { get } = await import(secure ? 'node:https' : 'node:http');
const host = process.env.HOST || '127.0.0.1';
const port = process.env.HTTP_PORT || 4318;
// The certificate is for the outside name; only whether somebody answers matters here.
const request = get({ host, port, path: '/live', timeout: 2000, rejectUnauthorized: false }, (response) => {
  process.exitCode = response.statusCode === 200 ? 0 : 1;
  response.resume();
});
request.on('timeout', () => request.destroy(new Error('no answer within 2 s')));
request.on('error', (error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
