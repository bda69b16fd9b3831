"""Scipy's compiled sparse kernels, without the packages around them.

``scipy.sparse`` draws in ``scipy.linalg``, f2py and most of numpy: 0.1 s of a question's process
and 20 MiB of a hub that keeps running, for the one module of loops that the walk calls. That module
stands on numpy's headers alone, so it's loaded by its place in the package. Never: any other
part of scipy (`tests/test_architecture.py` holds that nobody imports it at run time).
"""

from __future__ import annotations

from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

__all__ = ["sparse_kernels"]

_MODULE = "_sparsetools"


@cache
def sparse_kernels() -> Any:
    """The module ``scipy.sparse._sparsetools``: functions on the arrays of CSR, CSC and COO matrices.

    Raises
    ------
    ImportError
        Scipy is not installed, or keeps its kernels elsewhere.
    """
    package = find_spec("scipy")
    folders = () if package is None else package.submodule_search_locations or ()
    place = PathFinder.find_spec(_MODULE, [f"{folder}/sparse" for folder in folders])
    if place is None or place.loader is None:
        raise ImportError(f"scipy must hold sparse/{_MODULE}, searched {list(folders)}", name=_MODULE)
    module = module_from_spec(place)
    place.loader.exec_module(module)
    return module
