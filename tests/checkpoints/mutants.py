"""Mistakes that the tests of this folder must find: what is broken, where, the line as it is and with the mistake."""

from mutate import Mutant

VECTOR_FILES = ["tests/checkpoints/test_word_vector_file.py", "tests/cli/test_similar.py"]

MUTANTS = [
    Mutant(
        "vectors: the asked word is its own neighbour",
        "tasks/embed/word_vectors.py",
        old="scores[list(left_out)] = -np.inf",
        new="pass",
        tests=VECTOR_FILES,
    ),
    Mutant(
        "vectors: an analogy is turned round",
        "tasks/embed/word_vectors.py",
        old="return self._nearest(second - first + third,",
        new="return self._nearest(first - second + third,",
        tests=VECTOR_FILES,
    ),
    Mutant(
        "vectors: sizes are not checked",
        "checkpoints/word_vector_file.py",
        old="if len(data) - begin < least:",
        new="if False:",
        tests=VECTOR_FILES,
    ),
    Mutant(
        "vectors: words may come twice",
        "checkpoints/word_vector_file.py",
        old="if word in places:",
        new="if False:",
        tests=VECTOR_FILES,
    ),
    Mutant(
        "vectors: text loses digits",
        "checkpoints/word_vector_file.py",
        old="{value:.9g}",
        new="{value:.6g}",
        tests=VECTOR_FILES,
    ),
]
