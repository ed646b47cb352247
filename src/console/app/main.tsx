/** The page's entry: makes the services that every part uses, and draws the shell into the document. */
import { render } from 'preact';
import './style/main.css';
import { createServices, ServicesContext } from './services.ts';
import { Shell } from './shell/shell.tsx';

const services = createServices();
const mount = document.getElementById('app');
if (mount === null) throw new Error('the document has no place for the page');
render(
  <ServicesContext.Provider value={services}>
    <Shell />
  </ServicesContext.Provider>,
  mount,
);
