"""The rules of values that many kinds contain: names, quantities, selectors, lists of them."""
