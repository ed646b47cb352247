/** An HTTP operation as `/openapi.json` tells it: what a stage beside the deployment API serves, told by that stage. */
export interface DescribedOperation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** As a router has it: `/api/runs/:run_id`. */
  readonly pattern: string;
  readonly tag: string;
  readonly summary: string;
  readonly query?: readonly (string | QueryParameter)[];
  /** Of a success; 200 when absent. */
  readonly status?: number;
  /** What a success answers. */
  readonly answer: string;
}

export interface QueryParameter {
  readonly name: string;
  readonly description: string;
  /** JSON Schema; a string when absent. */
  readonly schema?: object;
}
