"""The knowledge with which a search begins: it is shipped, remembered, or learnt from both."""
