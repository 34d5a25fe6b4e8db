"""Words after which a full stop does not end a sentence, in lower case and without the stop; English, some German
and French. What is not here costs little: a sentence is cut too early, and no text is lost."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BEFORE_NAMES = _words(
    "mr mrs ms messrs mx dr drs prof st ste sen rep gov gen adm lt col capt cpt cmdr sgt maj cpl pvt rev hon pres supt "
    "mt fr mme mlle mgr hr fam dipl ing phil "
    "vs cf viz ie eg i.e e.g z.b d.h u.a bzw bspw ggf evtl inkl sog approx ca c resp"
)
"""Never the end: titles, and words that always go on."""

BEFORE_NUMBERS = _words("no nos nr p pp pg vol vols fig figs eq eqs ch chap sec sect art para op ed bd kap abb")
"""Not the end before a number: `No. 5`, `p. 12`; else ordinary words."""

MAY_END = _words(
    "etc inc ltd co corp bros jr sr esq al est dept univ assn ave blvd rd hwy ph.d usw dgl "
    "jan feb apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri "
    "lb lbs oz ft kg km cm mm avg"
)
"""The end only before a word that usually opens a sentence, as after `U.S.` and `a.m.`."""

OPENERS = _words(
    "The This That These Those There He She It They We I You His Her Its Their Our My In On At By For From With After "
    "Before When While As If Although Though However But And Or So Then Thus Since Until Because Despite During "
    "Some Many Most Several Such Another Both Each What Why How Who Where Der Die Das Ein Eine Er Sie Es Wir Le La Les "
    "Il Elle Un Une"
)
"""Words with a capital that usually open a sentence."""
