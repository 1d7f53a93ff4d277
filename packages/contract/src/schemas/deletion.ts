/** What is answered when an object is marked for deletion: the deletion itself happens when no router holds it. */
import Type from 'typebox';

export const markedForDeletion = Type.Object(
  {
    uuid: Type.String({ format: 'uuid' }),
    state: Type.Literal('marked_for_deletion'),
    message: Type.String({ description: 'Says that the object is marked for deletion.' }),
  },
  { $id: 'MarkedForDeletion', additionalProperties: false },
);
