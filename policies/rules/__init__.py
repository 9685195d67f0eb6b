"""Rules: what the person says once, in Cedar, so that nobody has to be asked each time.

`source` reads a file into policies, `arguments` and `schema` make the types that they are checked against, `facts`
makes the questions that a plan raises, `book` answers them, `checking` and `cases` are for the person who writes rules.
"""
