let x = 1
let y = effect "abc