"""Prints which provider ONNX Runtime assigns to each node of a model, by its own record: an independent path for tests.

    ort_assignment.py MODEL BACKEND [KEY=VALUE...]

Prints a JSON array of [provider, [[name, operator, domain], ...]]. `dim:NAME=N` gives a free dimension a size.
"""
import json
import os
import sys

import onnxruntime as ort
import onnxruntime_qnn

model, backend = sys.argv[1], sys.argv[2]
folder = os.path.dirname(onnxruntime_qnn.__file__)
ort.set_default_logger_severity(4)
ort.register_execution_provider_library("QNNExecutionProvider", os.path.join(folder, "libonnxruntime_providers_qnn.so"))
device = next(d for d in ort.get_ep_devices() if d.ep_name == "QNNExecutionProvider")
options = ort.SessionOptions()
options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
provider = {"backend_path": os.path.join(folder, backend)}
for setting in sys.argv[3:]:
    key, value = setting.split("=", 1)
    if key.startswith("dim:"):
        options.add_free_dimension_override_by_name(key.removeprefix("dim:"), int(value))
    else:
        provider[key] = value
options.add_provider_for_devices([device], provider)
session = ort.InferenceSession(model, options)
pieces = [
    [piece.ep_name, [[node.name, node.op_type, node.domain] for node in piece.get_nodes()]]
    for piece in session.get_provider_graph_assignment_info()
]
# The plug-in also prints to the console.
print("\nASSIGNMENT " + json.dumps(pieces))
