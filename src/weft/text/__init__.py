"""Text: files as people have them, and the schemes that turn them into ids. A new scheme is a file and a line here."""

from weft.text.base import TokenizerConfig
from weft.text.bpe import BPEConfig
from weft.text.byte_level import BytesConfig
from weft.text.characters import CharactersConfig
from weft.text.corpus import Corpus
from weft.text.demo import demo_text
from weft.text.files import Document, find_documents
from weft.text.special import SpecialTokens
from weft.text.spelling import END
from weft.text.tokenizer import Tokenizer
from weft.text.unigram import UnigramConfig
from weft.text.wordpiece import WordPieceConfig
from weft.text.words import WordsConfig, tokenizer_of_words

__all__ = [
    "END",
    "BPEConfig",
    "BytesConfig",
    "CharactersConfig",
    "Corpus",
    "Document",
    "SpecialTokens",
    "Tokenizer",
    "TokenizerConfig",
    "UnigramConfig",
    "WordPieceConfig",
    "WordsConfig",
    "demo_text",
    "find_documents",
    "tokenizer_of_words",
]
