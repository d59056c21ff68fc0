"""Packaging of EmoGaze Edge. Only `edge` is installed; the other folders run from the checkout."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
VERSION = re.search(r'^__version__ = "(.+)"$', (ROOT / "edge" / "__init__.py").read_text(), re.M).group(1)

# The base is what every device needs; whatever depends on the hardware, or on one job, is an extra.
BASE = [
    "numpy>=1.26",
    "opencv-python-headless>=4.10",
    "faiss-cpu>=1.9",
    "msgspec>=0.19",
    "tomli>=2; python_version < '3.11'",
    "pyzmq>=26",
    "cryptography>=44",
    "pylsl>=1.17",
    "prometheus-client>=0.21",
    "typer>=0.19",
    "rich>=13",
]

EXTRAS = {
    # One inference runtime per device. `cpu` and `gpu` overwrite each other's files: never install both.
    "cpu": ["onnxruntime>=1.20"],
    "gpu": ["onnxruntime-gpu>=1.20"],
    "openvino": ["openvino>=2025.0"],
    "litert": ["ai-edge-litert>=2.0"],
    # LiteRT's predecessor, where it is still wanted: Python 3.10 and 3.11, NumPy 1. Outside the locks.
    "legacy-tflite": ["tflite-runtime>=2.14; python_version < '3.12'", "numpy<2", "opencv-python-headless<4.12"],
    "tensorrt": ["tensorrt>=10", "pycuda>=2024.1"],
    # Jobs of a device.
    "video": ["av>=14"],
    "record": ["pyrage>=1.2", "mcap>=1.6"],
    "neon": ["pupil-labs-realtime-api>=1.5"],
    # Jobs of a workstation.
    "models": ["onnx>=1.17", "h5py>=3.11", "onnxruntime>=1.20", "ai-edge-litert>=2.0"],
    "host": [
        "scipy>=1.13",
        "pyarrow>=17",
        "pyxdf>=1.16",
        "openai>=1.60",
    ],
    "report": ["matplotlib>=3.9"],
    "annotate": ["gradio>=6"],
    "transformers": ["transformers>=4.50", "torch>=2.4", "pillow>=10"],
    "diffusers": ["diffusers>=0.30", "transformers>=4.50", "torch>=2.4", "pillow>=10"],
    "privacy": ["opendp>=0.12"],
    "ray": ["ray>=2.40"],
    "export": ["torch>=2.4", "torchvision>=0.19", "timm>=1.0", "onnxscript>=0.1"],
    # Installs the checkout itself without fetching anything unpinned.
    "checkout": ["setuptools>=75"],
    "dev": [
        "pytest>=8",
        "ruff>=0.8",
        "mypy>=1.13",
        "hypothesis>=6.100",
        "build>=1.2",
        "setuptools>=75",
        "selenium>=4.20",
    ],
    # Parses and builds every INT8 artefact without a GPU; a test-only stand-in for the device's TensorRT.
    "trt-check": ["tensorrt-rtx>=1.2; platform_machine == 'x86_64'"],
}

setup(
    name="emogaze-edge",
    version=VERSION,
    description="Edge inference runtime: gaze, scene and emotion in; context scores and redacted pictures out.",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="The EmoGaze Edge authors",
    license="Apache-2.0",
    license_files=["LICENSE", "THIRD_PARTY.md"],
    packages=find_packages(include=["edge", "edge.*"]),
    package_data={"edge": ["py.typed", "presets/*.toml"]},
    python_requires=">=3.10",
    install_requires=BASE,
    extras_require=EXTRAS,
    entry_points={"console_scripts": ["emogaze = edge.cli:main"]},
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Image Recognition",
        "Typing :: Typed",
    ],
)
