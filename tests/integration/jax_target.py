"""A workload for the tests of captures: a jitted step in a loop, and JAX's profiler server.

    jax_target.py    prints "READY port=N", works until stdin ends
"""
import os
import socket
import sys
import threading
import time

os.environ['JAX_PLATFORMS'] = 'cpu'


def main():
    import jax
    import jax.numpy as jnp

    step = jax.jit(lambda x: jnp.tanh(x @ x) * 0.5)
    x = step(jnp.ones((64, 64))).block_until_ready()
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    jax.profiler.start_server(port)
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    print(f'READY port={port}', flush=True)
    number = 0
    while not over.is_set():
        with jax.profiler.StepTraceAnnotation('train', step_num=number):
            x = step(x).block_until_ready()
        number += 1
        time.sleep(0.005)
    jax.profiler.stop_server()


if __name__ == '__main__':
    main()
