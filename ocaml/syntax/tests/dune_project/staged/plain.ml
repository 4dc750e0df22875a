let answer = [%answer]
