/**
 * Opens the port. The one file that loads uWebSockets.js, a native library: loaded only here and only when the server
 * starts, so that `--help` works where it cannot be loaded, and after its limit on the head's size has been set.
 */
import { createServer } from 'node:net';
import type * as uws from 'uWebSockets.js';

export interface ListenSettings {
  /** Empty: all interfaces, IPv4 and IPv6. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Both or neither. */
  readonly tlsCertFile: string | null;
  readonly tlsKeyFile: string | null;
  /** The variable that sets the port, for the message when it cannot be had. */
  readonly portVariable?: string;
}

export interface Listening {
  readonly port: number;
  /** Refuses new connections from here on; open ones stay. Idempotent. */
  stopListening(): void;
  /** Cuts every connection. Idempotent. */
  close(): void;
}

/** libusockets: fail when the port is taken, instead of sharing it with another process. */
const EXCLUSIVE_PORT = 1;

/** `route` registers the handlers. Throws an error with one readable line when the port cannot be had. */
export async function listen(settings: ListenSettings, route: (app: uws.TemplatedApp) => void): Promise<Listening> {
  const library = await import('uWebSockets.js');
  const app = createApp(library, settings);
  route(app);
  const listenSocket = await new Promise<uws.us_listen_socket | false>((resolve) => {
    if (settings.host === '') app.listen(settings.port, EXCLUSIVE_PORT, resolve);
    else (app.listen as unknown as ListenOnHost).call(app, settings.host, settings.port, EXCLUSIVE_PORT, resolve);
  });
  if (listenSocket === false) throw new Error(await whyNoListening(settings));
  let open = true;
  let closed = false;
  const stopListening = (): void => {
    if (open) library.us_listen_socket_close(listenSocket);
    open = false;
  };
  return {
    port: library.us_socket_local_port(listenSocket),
    stopListening,
    close: () => {
      stopListening();
      if (!closed) app.close();
      closed = true;
    },
  };
}

/** The typings lack the form with a host and options. */
type ListenOnHost = (
  host: string,
  port: number,
  options: number,
  callback: (socket: uws.us_listen_socket | false) => void,
) => void;

function createApp(library: typeof uws, settings: ListenSettings): uws.TemplatedApp {
  if (settings.tlsCertFile === null || settings.tlsKeyFile === null) return library.App();
  try {
    return library.SSLApp({ cert_file_name: settings.tlsCertFile, key_file_name: settings.tlsKeyFile });
  } catch (error) {
    const files = `TLS_CERT_FILE ${settings.tlsCertFile} and TLS_KEY_FILE ${settings.tlsKeyFile}`;
    throw new Error(`${files} are not a PEM certificate and its private key`, { cause: error });
  }
}

/** The library says only that it could not; the system's own words come from trying the same once more. */
function whyNoListening(settings: ListenSettings): Promise<string> {
  const place = `${settings.host === '' ? '' : `${settings.host} `}port ${settings.port}`;
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => {
      const reason =
        error.code === 'EADDRINUSE'
          ? 'another process listens there'
          : error.code === 'EACCES'
            ? 'not permitted'
            : error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND'
              ? 'no such address on this machine'
              : error.message;
      resolve(
        `cannot listen on ${place}: ${reason} (${error.code ?? 'unknown'}); set ${settings.portVariable ?? 'HTTP_PORT'} or HOST`,
      );
    });
    probe.listen({ port: settings.port, ...(settings.host !== '' && { host: settings.host }) }, () => {
      probe.close(() => resolve(`cannot listen on ${place}`));
    });
  });
}
