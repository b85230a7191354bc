"""Runs an ONNX model through ONNX Runtime with the QNN plug-in, as applications do.

    ort_host.py MODEL BACKEND COUNT [KEY=VALUE...]

BACKEND is a library of the plug-in (libQnnCpu.so) or a path. KEY=VALUE are provider options; those that begin with
`session:` are session options. Prints a digest of the outputs.
"""
import hashlib
import os
import sys

import numpy as np
import onnxruntime as ort
import onnxruntime_qnn

model, backend, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
folder = os.path.dirname(onnxruntime_qnn.__file__)
find = lambda name: next(os.path.join(r, f) for r, _, files in os.walk(folder) for f in files if f == name)
ort.set_default_logger_severity(4)
ort.register_execution_provider_library("QNNExecutionProvider", find("libonnxruntime_providers_qnn.so"))
device = next(d for d in ort.get_ep_devices() if d.ep_name == "QNNExecutionProvider")
options = ort.SessionOptions()
provider = {"backend_path": backend if "/" in backend else find(backend)}
for setting in sys.argv[4:]:
    key, value = setting.split("=", 1)
    if key.startswith("session:"):
        options.add_session_config_entry(key.removeprefix("session:"), value)
    else:
        provider[key] = value
options.add_provider_for_devices([device], provider)
session = ort.InferenceSession(model, options)
kinds = {"tensor(float)": np.float32, "tensor(uint8)": np.uint8, "tensor(int64)": np.int64}
random = np.random.default_rng(1)
feed = {i.name: random.random(i.shape).astype(kinds[i.type]) for i in session.get_inputs()}
outputs = []
for _ in range(count):
    outputs = session.run(None, feed)
digest = hashlib.sha256(b"".join(np.ascontiguousarray(output).tobytes() for output in outputs))
print("outputs", digest.hexdigest()[:16], [list(output.shape) for output in outputs])
