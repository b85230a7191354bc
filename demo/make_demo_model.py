#!/usr/bin/env python3
"""Make the bundled demo models of qnnscope from nothing but a random seed.

    python3.11 -m venv venv
    venv/bin/pip install -r demo/requirements.txt
    venv/bin/python demo/make_demo_model.py --out demo

Writes into the output directory:

    qnnscope-demo-float.dlc            float32 model
    qnnscope-demo-int8.dlc             the same model quantised, uint8 activations and weights
    reference/input-1x64x64x3-f32.raw  one input image, little-endian float32, NHWC
    reference/output-1x10-f32.raw      the float model's answer to it, computed with numpy alone

The network is a small MobileNet-like image classifier.  It is not trained: its weights are random
numbers drawn here, so nothing was downloaded and nobody else's rights apply to them.

Works on x86_64 Linux; no Qualcomm SDK is needed, the converter comes with onnxruntime-qnn.
"""

import argparse
import importlib.metadata
import io
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

SEED = 20240607
HEIGHT = WIDTH = 64
CLASSES = 10
OPSET = 17
GRAPH_NAME = "qnnscope_demo"
INPUT_NAME = "image"
OUTPUT_NAME = "probabilities"
CALIBRATION_IMAGES = 24

# name, output channels, expansion factor, stride; a residual Add where shape allows it
BLOCKS = [
    ("block1", 16, 2, 1),
    ("block2", 24, 3, 2),
    ("block3", 24, 3, 1),
    ("block4", 32, 3, 2),
    ("block5", 32, 3, 1),
    ("block6", 32, 3, 1),
    ("block7", 48, 3, 2),
    ("block8", 48, 3, 1),
    ("block9", 64, 3, 1),
]
STEM_CHANNELS = 16
HEAD_CHANNELS = 128
LOGIT_DEVIATION = 1.5  # keeps the softmax between uniform and one-hot


class DemoError(Exception):
    """A problem that is worth a plain sentence instead of a traceback."""


def require_packages():
    """Import the third-party packages, or say what to install."""
    global np, onnx, ort
    try:
        import numpy
        import onnx as onnx_module
        import onnxruntime
    except ImportError as e:
        raise DemoError(
            f"Python package missing: {e.name}\n"
            "Install the pinned versions first: pip install -r demo/requirements.txt"
        ) from e
    np, onnx, ort = numpy, onnx_module, onnxruntime
    try:
        importlib.metadata.version("onnxruntime-qnn")
    except importlib.metadata.PackageNotFoundError as e:
        raise DemoError(
            "Python package missing: onnxruntime-qnn\n"
            "Install the pinned versions first: pip install -r demo/requirements.txt"
        ) from e


# ---------------------------------------------------------------------------------------------
# The network: a flat list of layers, so that the ONNX writer and the numpy reference stay simple
# ---------------------------------------------------------------------------------------------


def make_network():
    """Return the list of layers with their weights (conv weights in ONNX order: O, I/group, H, W)."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    layers = []

    def conv(name, source, cin, cout, kernel, stride, group=1, gain=2.0):
        fan_in = cin // group * kernel * kernel
        w = rng.standard_normal((cout, cin // group, kernel, kernel)) * np.sqrt(gain / fan_in)
        b = rng.standard_normal(cout) * 0.05
        layers.append(
            dict(op="Conv", name=name, inputs=[source], w=w.astype(np.float32), b=b.astype(np.float32),
                 stride=stride, pad=kernel // 2, group=group)
        )
        return name

    def simple(op, name, *sources):
        layers.append(dict(op=op, name=name, inputs=list(sources)))
        return name

    x = conv("stem_conv", INPUT_NAME, 3, STEM_CHANNELS, 3, 2)
    x = simple("Relu", "stem_relu", x)
    channels = STEM_CHANNELS
    for name, cout, factor, stride in BLOCKS:
        wide = channels * factor
        skip = x
        x = conv(f"{name}_expand", x, channels, wide, 1, 1)
        x = simple("Relu6", f"{name}_expand_relu6", x)
        x = conv(f"{name}_depthwise", x, wide, wide, 3, stride, group=wide)
        x = simple("Relu6", f"{name}_depthwise_relu6", x)
        # no activation follows: gain 1, and less where a residual sum follows
        adds = stride == 1 and cout == channels
        x = conv(f"{name}_project", x, wide, cout, 1, 1, gain=0.5 if adds else 1.0)
        if adds:
            x = simple("Add", f"{name}_add", skip, x)
        channels = cout
    x = conv("head_conv", x, channels, HEAD_CHANNELS, 1, 1)
    x = simple("Relu", "head_relu", x)
    x = simple("AvgPool", "pool", x)
    x = simple("Flatten", "flatten", x)

    # Random features hardly differ from image to image, so a random classifier would give every
    # image nearly the same answer.  Compare instead with the features of ten synthetic images: the
    # weights of class i are the features of image i less the mean over all probe images.
    probe = np.concatenate([make_image(1000 + i) for i in range(CALIBRATION_IMAGES)])
    features = run_numpy(layers, probe).astype(np.float64)
    centred = features - features.mean(axis=0)
    w = centred[:CLASSES] / np.linalg.norm(centred[:CLASSES], axis=1, keepdims=True)
    w *= LOGIT_DEVIATION / (centred @ w.T).std()
    b = rng.standard_normal(CLASSES) * 0.05 - w @ features.mean(axis=0)
    layers.append(dict(op="Dense", name="classifier", inputs=[x],
                       w=w.astype(np.float32), b=b.astype(np.float32)))
    layers.append(dict(op="Softmax", name="softmax", inputs=["classifier"]))
    return layers


def make_image(seed):
    """One synthetic 1x64x64x3 picture with values 0 to 1: waves and a few rectangles."""
    rng = np.random.Generator(np.random.PCG64([SEED, seed]))
    y, x = np.meshgrid(np.linspace(0, 1, HEIGHT), np.linspace(0, 1, WIDTH), indexing="ij")
    image = np.empty((HEIGHT, WIDTH, 3))
    for c in range(3):
        fy, fx = rng.uniform(-6, 6, 2)
        image[:, :, c] = rng.uniform(0.3, 0.7) + rng.uniform(0.1, 0.3) * np.sin(
            2 * np.pi * (fy * y + fx * x) + rng.uniform(0, 6)
        )
    for _ in range(4):
        top, left = rng.integers(0, HEIGHT - 12), rng.integers(0, WIDTH - 12)
        tall, wide = rng.integers(6, 28, 2)
        image[top:top + tall, left:left + wide] = rng.uniform(0, 1, 3)
    image += rng.normal(0, 0.02, image.shape)
    return np.clip(image, 0, 1).astype(np.float32)[np.newaxis]


# ---------------------------------------------------------------------------------------------
# Reference: plain numpy, float64 inside, channels last; shares no code with onnxruntime
# ---------------------------------------------------------------------------------------------


def conv_numpy(x, layer):
    w = layer["w"].astype(np.float64)
    stride, pad, group = layer["stride"], layer["pad"], layer["group"]
    kernel = w.shape[2]
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    out_h = (x.shape[1] - kernel) // stride + 1
    out_w = (x.shape[2] - kernel) // stride + 1
    out = np.zeros((x.shape[0], out_h, out_w, w.shape[0]))
    for i in range(kernel):
        for j in range(kernel):
            part = x[:, i:i + stride * (out_h - 1) + 1:stride, j:j + stride * (out_w - 1) + 1:stride, :]
            if group == 1:
                out += part @ w[:, :, i, j].T
            else:  # depthwise: one filter for each channel
                out += part * w[:, 0, i, j]
    return out + layer["b"]


def run_numpy(layers, image):
    """The value of the last layer for a batch of NHWC images."""
    values = {INPUT_NAME: image.astype(np.float64)}
    for layer in layers:
        x = [values[name] for name in layer["inputs"]]
        match layer["op"]:
            case "Conv":
                y = conv_numpy(x[0], layer)
            case "Relu":
                y = np.maximum(x[0], 0)
            case "Relu6":
                y = np.clip(x[0], 0, 6)
            case "Add":
                y = x[0] + x[1]
            case "AvgPool":
                y = x[0].mean(axis=(1, 2), keepdims=True)
            case "Flatten":
                y = x[0].reshape(x[0].shape[0], -1)
            case "Dense":
                y = x[0] @ layer["w"].astype(np.float64).T + layer["b"]
            case "Softmax":
                e = np.exp(x[0] - x[0].max(axis=-1, keepdims=True))
                y = e / e.sum(axis=-1, keepdims=True)
        values[layer["name"]] = y
    return y.astype(np.float32)


# ---------------------------------------------------------------------------------------------
# ONNX
# ---------------------------------------------------------------------------------------------


def make_onnx(layers):
    from onnx import TensorProto, helper, numpy_helper

    nodes, initializers = [], []

    def constant(name, value):
        initializers.append(numpy_helper.from_array(value, name))
        return name

    # The picture comes channels last, as on the device; ONNX convolutions want channels first.
    # The QNN converter turns this Transpose around again, so it costs nothing.
    nodes.append(helper.make_node("Transpose", [INPUT_NAME], ["image_nchw"], name="to_nchw", perm=[0, 3, 1, 2]))
    constant("relu6_min", np.array(0, np.float32))
    constant("relu6_max", np.array(6, np.float32))
    rename = {INPUT_NAME: "image_nchw", "softmax": OUTPUT_NAME}
    for layer in layers:
        name = layer["name"]
        inputs = [rename.get(i, i) for i in layer["inputs"]]
        outputs = [rename.get(name, name)]
        if "w" in layer:
            inputs += [constant(f"{name}_weight", layer["w"]), constant(f"{name}_bias", layer["b"])]
        match layer["op"]:
            case "Conv":
                k, p = layer["w"].shape[2], layer["pad"]
                node = helper.make_node("Conv", inputs, outputs, name, kernel_shape=[k, k], pads=[p] * 4,
                                        strides=[layer["stride"]] * 2, group=layer["group"])
            case "Relu" | "Add":
                node = helper.make_node(layer["op"], inputs, outputs, name)
            case "Relu6":
                node = helper.make_node("Clip", inputs + ["relu6_min", "relu6_max"], outputs, name)
            case "AvgPool":
                node = helper.make_node("GlobalAveragePool", inputs, outputs, name)
            case "Flatten":
                node = helper.make_node("Flatten", inputs, outputs, name, axis=1)
            case "Dense":
                node = helper.make_node("Gemm", inputs, outputs, name, transB=1)
            case "Softmax":
                node = helper.make_node("Softmax", inputs, outputs, name, axis=-1)
        nodes.append(node)

    graph = helper.make_graph(
        nodes, GRAPH_NAME,
        [helper.make_tensor_value_info(INPUT_NAME, TensorProto.FLOAT, [1, HEIGHT, WIDTH, 3])],
        [helper.make_tensor_value_info(OUTPUT_NAME, TensorProto.FLOAT, [1, CLASSES])],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                              producer_name="make_demo_model.py")
    model.ir_version = 10
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    onnx.checker.check_model(model, full_check=True)
    return model


def run_onnx(path, image):
    # Unfused and on one thread: the fused uint8 kernels of onnxruntime do not give the same numbers twice.
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run([OUTPUT_NAME], {INPUT_NAME: image})[0]


def quantise(float_path, quantised_path):
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize
    from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config

    class Images(CalibrationDataReader):
        def __init__(self):
            self.images = iter([make_image(i) for i in range(CALIBRATION_IMAGES)])

        def get_next(self):
            image = next(self.images, None)
            return None if image is None else {INPUT_NAME: image}

    config = get_qnn_qdq_config(str(float_path), Images(), activation_type=QuantType.QUInt8,
                                weight_type=QuantType.QUInt8, keep_removable_activations=True)
    quantize(str(float_path), str(quantised_path), config)


# ---------------------------------------------------------------------------------------------
# DLC, through the QNN plug-in of onnxruntime
# ---------------------------------------------------------------------------------------------


def plugin_directory():
    for entry in importlib.metadata.files("onnxruntime-qnn") or []:
        if entry.name == "libonnxruntime_providers_qnn.so":
            return pathlib.Path(entry.locate()).parent
    raise DemoError("onnxruntime-qnn is installed but has no libonnxruntime_providers_qnn.so;\n"
                    "this script needs the x86_64 Linux wheel of onnxruntime-qnn 2.3.0")


def dump_dlc(model_path, directory, backend):
    """Runs in a process of its own (see convert): the plug-in cannot be loaded twice cleanly."""
    plugin = plugin_directory()
    ort.set_default_logger_severity(3)
    ort.register_execution_provider_library(
        "QNNExecutionProvider", str(plugin / "libonnxruntime_providers_qnn.so"))
    devices = [d for d in ort.get_ep_devices() if d.ep_name == "QNNExecutionProvider"]
    if not devices:
        raise DemoError("the QNN plug-in was loaded but offers no device")
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "0")
    options.add_provider_for_devices(devices[:1], {
        "backend_path": str(plugin / backend),
        "dump_qnn_ir_dlc": "1",
        "dump_qnn_ir_dlc_dir": str(directory),
        "qnn_ir_backend_path": str(plugin / "libQnnIr.so"),
    })
    ort.InferenceSession(str(model_path), sess_options=options)


def convert(model_path, work, dlc_path, backend):
    directory = work / (dlc_path.stem + "-dump")
    directory.mkdir()
    # relative paths: the plug-in derives the name it gives the graph from the path of the model
    command = [sys.executable, os.path.abspath(__file__), "--dump-dlc", model_path.name, directory.name, backend]
    done = subprocess.run(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = sorted(directory.glob("*.dlc"))
    if done.returncode != 0 or not found:
        raise DemoError(f"making {dlc_path.name} failed (exit code {done.returncode}):\n{done.stdout[-3000:]}")
    if len(found) != 1:
        raise DemoError(f"{dlc_path.name}: QNN did not take the model whole, it made {len(found)} parts: "
                        + ", ".join(p.name for p in found))
    dlc_path.write_bytes(tidy_dlc(found[0].read_bytes(), found[0].stem))


def tidy_dlc(data, name):
    """Give the graph its proper name and take the date out, so that every run makes the same file.

    The plug-in names the graph after a hash that depends on where the ONNX file lay.  A DLC is a zip
    of uncompressed entries without checksums; inside, the name is a flatbuffers string (u32 length,
    bytes, NUL, padding), so a shorter name fits in the same place and nothing else has to move.
    """
    old, new = name.encode(), GRAPH_NAME.encode()
    if len(new) > len(old):
        raise DemoError(f"the graph name {GRAPH_NAME} is too long to replace {name}")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if any(e.compress_type != zipfile.ZIP_STORED or e.CRC != 0 for e in archive.infolist()):
            raise DemoError("this DLC is not packed the way onnxruntime-qnn 2.3.0 packs it; "
                            "install the pinned versions")
    string = struct.pack("<I", len(old)) + old + b"\0"
    if data.count(string) < 2:
        raise DemoError(f"the graph name {name} was not found in the DLC")
    data = data.replace(string, (struct.pack("<I", len(new)) + new).ljust(len(string), b"\0"))
    # the metadata is JSON text; spaces between its tokens do no harm
    data = data.replace(b'"' + old + b'.so(.dll)"', (b'"' + new + b'"').ljust(len(old) + 11))
    data = re.sub(rb'"timestamp": "\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"',
                  b'"timestamp": "2000-01-01 00:00:00 UTC"', data)
    if old in data:
        raise DemoError(f"the graph name {name} is left somewhere in the DLC")
    return data


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, default=pathlib.Path(__file__).parent,
                        help="where to write (default: beside this script)")
    parser.add_argument("--keep-onnx", action="store_true", help="also write the two ONNX models")
    parser.add_argument("--dump-dlc", nargs=3, metavar=("ONNX", "DIR", "BACKEND"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    require_packages()
    if arguments.dump_dlc:
        dump_dlc(*arguments.dump_dlc)
        return
    build(arguments.out, arguments.keep_onnx)


def build(out, keep_onnx):
    plugin_directory()
    reference = out / "reference"
    try:
        reference.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise DemoError(f"cannot create {reference}: {e.strerror}") from e

    layers = make_network()
    image = make_image(0)
    expected = run_numpy(layers, image)
    print(f"reference output: {np.array2string(expected[0], precision=4)}")

    with tempfile.TemporaryDirectory(prefix="qnnscope-demo-") as work:
        work = pathlib.Path(work)
        float_path, int8_path = work / "demo-float.onnx", work / "demo-int8.onnx"
        onnx.save(make_onnx(layers), float_path)
        difference = float(np.abs(run_onnx(float_path, image) - expected).max())
        print(f"numpy against onnxruntime: largest difference {difference:.2e}")
        if not difference < 1e-4:
            raise DemoError("the numpy reference and onnxruntime disagree; nothing was written")
        if not (0.15 < expected.max() < 0.8):
            raise DemoError("the reference output is nearly uniform or nearly one-hot; change SEED")

        quantise(float_path, int8_path)
        difference = float(np.abs(run_onnx(int8_path, image) - expected).max())
        print(f"quantised against float: largest difference {difference:.3f}")

        for path, name in [(float_path, "qnnscope-demo-float"), (int8_path, "qnnscope-demo-int8")]:
            backend = "libQnnCpu.so" if path is float_path else "libQnnHtp.so"
            dlc = out / f"{name}.dlc"
            convert(path, work, dlc, backend)
            print(f"{dlc}: {dlc.stat().st_size} bytes")
        if keep_onnx:
            shutil.copyfile(float_path, out / "qnnscope-demo-float.onnx")
            shutil.copyfile(int8_path, out / "qnnscope-demo-int8.onnx")

    (reference / "input-1x64x64x3-f32.raw").write_bytes(image.astype("<f4").tobytes())
    (reference / "output-1x10-f32.raw").write_bytes(expected.astype("<f4").tobytes())


if __name__ == "__main__":
    try:
        main()
    except DemoError as e:
        sys.exit(f"make_demo_model.py: {e}")
