"""Makes the DLCs of this folder: a small float model of our own, its quantised form, and quantised forms with one planted fault each.

    python -m venv v && v/bin/pip install onnxruntime==1.24.4 onnxruntime-qnn==2.3.0 onnx numpy
    v/bin/python make.py OUTPUT_FOLDER
"""

import glob
import os
import shutil
import struct
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
import onnxruntime_qnn
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize
from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config

PACKAGE = os.path.dirname(onnxruntime_qnn.__file__)
CHANNELS = 8
LOUD = 3


def model(loud_channel=False, shift=None):
    """conv, relu, conv (both signs), tanh, conv, relu, pool, gemm, softmax; `shift` is added before tanh and subtracted after it."""
    rng = np.random.default_rng(7)
    weights = {}

    def add(name, array):
        weights[name] = np.asarray(array, np.float32)
        return name

    w1 = rng.normal(0, 0.25, (CHANNELS, 3, 3, 3))
    w2 = rng.normal(0, 0.15, (CHANNELS, CHANNELS, 3, 3))
    if loud_channel:
        # The float model does not change: the next layer undoes what one channel gains.
        w1[LOUD] *= 100
        w2[:, LOUD] /= 100
    add("w1", w1), add("b1", rng.normal(0.2, 0.05, CHANNELS) * np.where(loud_channel & (np.arange(CHANNELS) == LOUD), 100, 1))
    add("w2", w2), add("b2", rng.normal(0.9, 0.2, CHANNELS))
    add("w3", rng.normal(0, 0.15, (CHANNELS, CHANNELS, 3, 3))), add("b3", rng.normal(0.1, 0.05, CHANNELS))
    add("fw", rng.normal(0, 0.5, (CHANNELS, 5))), add("fb", rng.normal(0, 0.1, 5))
    conv = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["c1"], name="conv1", **conv),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu1"),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], name="conv2", **conv),
        helper.make_node("Tanh", ["c2"], ["t2"], name="tanh2"),
        helper.make_node("Conv", ["down" if shift else "t2", "w3", "b3"], ["c3"], name="conv3", **conv),
        helper.make_node("Relu", ["c3"], ["r3"], name="relu3"),
        helper.make_node("GlobalAveragePool", ["r3"], ["g"], name="gap"),
        helper.make_node("Flatten", ["g"], ["f"], name="flatten"),
        helper.make_node("Gemm", ["f", "fw", "fb"], ["l"], name="fc"),
        helper.make_node("Softmax", ["l"], ["probs"], name="softmax"),
    ]
    if shift:
        add("shift", np.array([shift]))
        nodes[4:4] = [
            helper.make_node("Add", ["t2", "shift"], ["up"], name="add"),
            helper.make_node("Sub", ["up", "shift"], ["down"], name="sub"),
        ]
    graph = helper.make_graph(
        nodes,
        "planted",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 16, 16])],
        [helper.make_tensor_value_info("probs", TensorProto.FLOAT, [1, 5])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 9
    return made


def kinds():
    """Truth values, whole numbers, and numbers that are none: a comparison, a choice, 0 / 0, the largest one's place."""
    constants = {"half": np.array([0.5]), "none": np.array([0.0])}
    nodes = [
        helper.make_node("Greater", ["image", "half"], ["above"], name="greater"),
        helper.make_node("Where", ["above", "image", "none"], ["kept"], name="where"),
        helper.make_node("Div", ["kept", "kept"], ["odd"], name="div"),
        helper.make_node("ArgMax", ["kept"], ["place"], name="argmax", axis=3, keepdims=1),
        helper.make_node("Cast", ["place"], ["number"], name="cast", to=TensorProto.FLOAT),
        helper.make_node("Add", ["odd", "number"], ["sum"], name="add"),
    ]
    graph = helper.make_graph(
        nodes,
        "kinds",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 4, 4, 8])],
        [helper.make_tensor_value_info("sum", TensorProto.FLOAT, [1, 4, 4, 8])],
        [numpy_helper.from_array(np.asarray(array, np.float32), name) for name, array in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 9
    return made


class Samples(CalibrationDataReader):
    def __init__(self):
        rng = np.random.default_rng(1)
        self.rows = iter([{"image": rng.random((1, 3, 16, 16), np.float32)} for _ in range(16)])

    def get_next(self):
        return next(self.rows, None)


def quantised(folder, name, float_path, overrides=None, per_channel=False, after=None):
    """Writes NAME.onnx in QDQ form, 8 bits throughout."""
    path = os.path.join(folder, name + ".onnx")
    config = get_qnn_qdq_config(
        float_path,
        Samples(),
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8 if per_channel else QuantType.QUInt8,
        per_channel=per_channel,
        init_overrides=overrides,
    )
    quantize(float_path, path, config)
    if after:
        made = onnx.load(path)
        after(made)
        onnx.save(made, path)
    return path


def scale_of(path, tensor):
    made = onnx.load(path)
    values = {row.name: numpy_helper.to_array(row) for row in made.graph.initializer}
    return float(values[tensor + "_scale"].ravel()[0]), int(values[tensor + "_zero_point"].ravel()[0])


def dlc(path, target):
    """Writes the DLC of an ONNX model that the plug-in takes whole."""
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        device = [d for d in ort.get_ep_devices() if d.ep_name == "QNNExecutionProvider"][0]
        options.add_provider_for_devices(
            [device],
            {
                "backend_path": os.path.join(PACKAGE, "libQnnHtp.so"),
                "dump_qnn_ir_dlc": "1",
                "dump_qnn_ir_dlc_dir": folder,
                "qnn_ir_backend_path": os.path.join(PACKAGE, "libQnnIr.so"),
                "soc_model": "57",
                "htp_arch": "75",
                "offload_graph_io_quantization": "0",
            },
        )
        ort.InferenceSession(path, options)
        made = glob.glob(os.path.join(folder, "*.dlc"))
        assert len(made) == 1, (path, made)
        shutil.copy(made[0], target)


def patch(source, target, scale, old, new):
    """Replaces the offset of the encoding with this scale inside a DLC."""
    before, after = struct.pack("<fi", scale, old), struct.pack("<fi", scale, new)
    # A DLC is a zip whose members are stored as they are; its makers do not keep their checksums.
    with open(source, "rb") as file:
        data = file.read()
    assert data.count(before) >= 1, (scale, old)
    with open(target, "wb") as file:
        file.write(data.replace(before, after))


def bad_scale(factor):
    def change(made):
        for row in made.graph.initializer:
            if row.name == "w3_scale":
                array = numpy_helper.to_array(row).copy()
                assert array.shape == (CHANNELS,), array.shape
                array[6] *= factor
                row.CopyFrom(numpy_helper.from_array(array, row.name))

    return change


def main(folder):
    ort.register_execution_provider_library("QNNExecutionProvider", glob.glob(os.path.join(PACKAGE, "libonnxruntime_providers_qnn.so"))[0])
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        at = lambda name: os.path.join(work, name)
        to = lambda name: os.path.join(folder, name + ".dlc")
        onnx.save(model(), at("float.onnx"))
        onnx.save(model(loud_channel=True), at("loud_float.onnx"))
        dlc(at("float.onnx"), to("float"))
        dlc(at("loud_float.onnx"), to("loud-float"))
        good = quantised(work, "good", at("float.onnx"))
        dlc(good, to("good"))
        scale, zero = scale_of(good, "r1")
        top = scale * 255
        dlc(quantised(work, "small", at("float.onnx"), {"r1": [{"rmin": np.float32(0), "rmax": np.float32(top / 10)}]}), to("range-too-small"))
        dlc(quantised(work, "large", at("float.onnx"), {"r1": [{"rmin": np.float32(0), "rmax": np.float32(top * 10)}]}), to("range-too-large"))
        scale, zero = scale_of(good, "c2")
        print("c2", scale, zero)
        patch(to("good"), to("offset-sign"), np.float32(scale), -zero, zero)
        low, high = -zero * scale, (255 - zero) * scale
        dlc(quantised(work, "turned", at("float.onnx"), {"c2": [{"rmin": np.float32(-high), "rmax": np.float32(-low)}]}), to("ends-turned"))
        dlc(quantised(work, "channel", at("float.onnx"), per_channel=True, after=bad_scale(4.0)), to("channel-scale"))
        dlc(quantised(work, "loud", at("loud_float.onnx")), to("channel-loud"))
        onnx.save(kinds(), at("kinds.onnx"))
        dlc(at("kinds.onnx"), to("kinds"))
        for name in ("float", "good"):
            shutil.copy(at(name + ".onnx"), os.path.join(folder, name + ".onnx"))
        onnx.save(model(shift=40.0), at("shift_float.onnx"))
        dlc(at("shift_float.onnx"), to("shift-float"))
        dlc(quantised(work, "bits", at("shift_float.onnx")), to("bits-too-few"))


main(sys.argv[1])
