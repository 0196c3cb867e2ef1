"""Answers of bodies given as one matrix."""

import numpy as np
from numpy.typing import NDArray

from phyxel.meeting.answer_blocks import WAYS
from phyxel.meeting.coulomb import AnswerBlocks

Floats = NDArray[np.float64]


def blocks_of(G: Floats) -> AnswerBlocks:
    """G (3k, r) by blocks of six columns each; those of a contact that are 0 are left out."""
    count = -(-G.shape[1] // WAYS)
    every = np.pad(G, [(0, 0), (0, WAYS * count - G.shape[1])]).reshape(-1, 3, count, WAYS).swapaxes(1, 2)
    contact, block = np.nonzero(every.any(axis=(2, 3)))
    return AnswerBlocks.of(contact, block, every[contact, block], len(every), count)


def matrix_of(blocks: AnswerBlocks) -> Floats:
    """G (3k, 6n) of blocks."""
    G = np.zeros((len(blocks.begin) - 1, 3, blocks.count, WAYS))
    G[blocks.contact, :, blocks.block] = blocks.G
    return G.reshape(3 * len(G), -1)
