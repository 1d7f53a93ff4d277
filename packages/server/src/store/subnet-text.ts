/** Owns how SQL writes a subnet as the interface has it. */

/** A single address without its length. */
export const subnetText = (column: string) =>
  `case when masklen(${column}) = case family(${column}) when 4 then 32 else 128 end
    then host(${column}) else ${column}::text end`;
